"""The drawings, one function a figure; rows come from `rows`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from planner.report.plots.rows import PARTS, Row

if TYPE_CHECKING:
    import altair as alt

WIDTH: Final = 560
HEIGHT: Final = 320
COLOURS: Final = ("#2f6fde", "#c4650a", "#2b8a3e", "#8a4fd0", "#0b8a8f", "#c2377e", "#74741a", "#8d5524")
EFFICIENT: Final = 0.7


def _data(values: list[Row]) -> Any:
    """Rows written into the figure itself."""
    import altair as alt

    return alt.InlineData(values=values)


def _chart(data: list[Row], title: str) -> alt.Chart:
    import altair as alt

    return alt.Chart(_data(data), title=title).properties(width=WIDTH, height=HEIGHT)


def _colour(key: str, **options: Any) -> alt.Color:
    import altair as alt

    return alt.Color(
        f"{key}:N",
        title=None,
        scale=alt.Scale(range=list(COLOURS)),
        legend=alt.Legend(orient="bottom", columns=2, labelLimit=420),
        **options,
    )


def _gpus() -> alt.X:
    import altair as alt

    return alt.X("gpus:Q", title="GPUs", scale=alt.Scale(type="log", base=2), axis=alt.Axis(format="d"))


def efficiency(data: list[Row]) -> alt.TopLevelMixin:
    """Efficiency against GPUs, with the threshold of 70 %; hollow points do not fit."""
    import altair as alt

    lines = _chart(data, "Efficiency of tensor parallelism").encode(
        x=_gpus(), y=alt.Y("efficiency:Q", title="efficiency T(1) / (n T(n))", axis=alt.Axis(format="%")), color=_colour("series")
    )
    filled = alt.condition("datum.fits === 'fits'", alt.value(1), alt.value(0))
    points = lines.mark_point(size=70, filled=True).encode(fillOpacity=filled)
    rule = alt.Chart(_data([{"y": EFFICIENT}])).mark_rule(strokeDash=[5, 4]).encode(y="y:Q")
    return alt.layer(lines.mark_line(), points, rule)


def step_time(data: list[Row]) -> alt.TopLevelMixin:
    """Time per token against GPUs."""
    import altair as alt

    lines = _chart(data, "Time per token").encode(
        x=_gpus(), y=alt.Y("ms:Q", title="ms a token", scale=alt.Scale(zero=True)), color=_colour("series")
    )
    return alt.layer(lines.mark_line(), lines.mark_point(size=60, filled=True))


def regimes(data: list[Row]) -> alt.TopLevelMixin:
    """Compute over communication as a map: above 1 the GPUs are busy, below it the links."""
    import altair as alt

    base = _chart(data, "").encode(
        x=alt.X("tp:N", title=None, sort=alt.EncodingSortField("order", op="min"), axis=alt.Axis(labelAngle=0)),
        y=alt.Y("where:N", title=None, axis=alt.Axis(labelLimit=340)),
    )
    scale = alt.Scale(type="log", domain=[0.1, 100], scheme="blueorange", reverse=True, clamp=True)
    cells = base.mark_rect(stroke="white").encode(color=alt.Color("ratio:Q", title="compute / communication", scale=scale))
    words = base.mark_text(fontSize=11).encode(text=alt.Text("ratio:Q", format=".2~g"), color=alt.value("black"))
    height = 34 * len({row["where"] for row in data})
    layers = alt.layer(cells, words).properties(width=60 * len({row["tp"] for row in data}) + 60, height=max(height, 60))
    return layers.facet(column=alt.Column("phase:N", title=None), title="Compute over communication")


def layouts(data: list[Row]) -> alt.TopLevelMixin:
    """Time per token of layouts by its parts: tensor against pipeline parallelism."""
    import altair as alt

    order = alt.EncodingSortField("gpus", op="min")
    bars = (
        _chart(data, "Time per token by layout")
        .mark_bar()
        .encode(
            y=alt.Y("layout:N", title=None, sort=order),
            x=alt.X("ms:Q", title="ms a token"),
            color=alt.Color(
                "part:N",
                title=None,
                sort=[name for name, _ in PARTS],
                scale=alt.Scale(domain=[name for name, _ in PARTS], range=["#3b6fb6", "#d9822b", "#a05bc0", "#c2377e", "#7f8894"]),
                legend=alt.Legend(orient="bottom"),
            ),
            order="place:Q",
        )
    )
    return _by_batch(bars, data)


def cost(data: list[Row]) -> alt.TopLevelMixin:
    """Money per million output tokens of layouts against their time per token, one line a layout."""
    import altair as alt

    base = _chart(data, "Cost per 1M output tokens").encode(
        x=alt.X("ms:Q", title="ms a token", scale=alt.Scale(zero=False)),
        y=alt.Y("money:Q", title="$ per 1M output tokens", scale=alt.Scale(type="log")),
        color=alt.Color("layout:N", title=None, legend=alt.Legend(orient="right"), scale=alt.Scale(range=list(COLOURS))),
    )
    return alt.layer(base.mark_line(opacity=0.6).encode(order="batch:Q"), base.mark_point(size=70, filled=True))


def bubble(data: list[Row]) -> alt.TopLevelMixin:
    """Idle share of the stages against the microbatches in flight."""
    import altair as alt

    lines = _chart(data, "Pipeline bubble").encode(
        x=alt.X("microbatches:Q", title="microbatches in flight", scale=alt.Scale(type="log", base=2), axis=alt.Axis(format="d")),
        y=alt.Y("bubble:Q", title="share of a step that stages idle", axis=alt.Axis(format="%")),
        color=_colour("stages"),
    )
    return alt.layer(lines.mark_line(), lines.mark_point(size=60, filled=True))


def memory(data: list[Row]) -> alt.TopLevelMixin:
    """Memory a GPU needs against the number of GPUs, and what it has."""
    import altair as alt

    lines = _chart(data, "Memory of a GPU").encode(x=_gpus(), color=_colour("series"))
    log = alt.Scale(type="log", base=2)
    needed = lines.encode(y=alt.Y("needed:Q", title="GiB a GPU", scale=log))
    budget = lines.mark_line(strokeDash=[5, 4], opacity=0.7).encode(y=alt.Y("budget:Q", scale=log))
    return alt.layer(needed.mark_line(), needed.mark_point(size=60, filled=True), budget)


def smallest(data: list[Row]) -> alt.TopLevelMixin:
    """Fewest GPUs by GPU memory: the frontier."""
    import altair as alt

    lines = _chart(data, "Fewest GPUs by memory of a GPU").encode(
        x=alt.X("memory:Q", title="GiB of a GPU"),
        y=alt.Y("smallest:Q", title="GPUs", scale=alt.Scale(type="log", base=2), axis=alt.Axis(format="d")),
        color=_colour("series"),
    )
    return alt.layer(lines.mark_line(interpolate="step-after"), lines.mark_point(size=60, filled=True))


def link(data: list[Row]) -> alt.TopLevelMixin:
    """Measured times of a collective and the line alpha + beta, on logarithmic axes."""
    import altair as alt

    log = alt.Scale(type="log")
    base = _chart(data, "Measured against alpha + beta").encode(
        x=alt.X("bytes:Q", title="message [B]", scale=log, axis=alt.Axis(format="~s")),
        y=alt.Y("us:Q", title="us", scale=log),
        color=_colour("series"),
    )
    points = base.transform_filter("datum.kind === 'measured'").mark_point(size=40, filled=True)
    lines = base.transform_filter("datum.kind !== 'measured'").mark_line()
    return alt.layer(lines, points)


def comparison(data: list[Row]) -> alt.TopLevelMixin:
    """Predicted against measured step times; on the diagonal they agree."""
    import altair as alt

    ends = [min(min(row["measured"], row["predicted"]) for row in data), max(max(row["measured"], row["predicted"]) for row in data)]
    log = alt.Scale(type="log", domain=[ends[0] * 0.9, ends[1] * 1.1])
    points = (
        _chart(data, "Predicted against measured")
        .mark_point(size=60, filled=True)
        .encode(
            x=alt.X("measured:Q", title="measured [ms]", scale=log),
            y=alt.Y("predicted:Q", title="predicted [ms]", scale=log),
            color=_colour("series"),
            tooltip="words:N",
        )
    )
    diagonal = (
        alt.Chart(_data([{"x": end} for end in ends]))
        .mark_line(strokeDash=[5, 4], color="#7f8894")
        .encode(x=alt.X("x:Q", scale=log), y=alt.Y("x:Q", scale=log))
    )
    return alt.layer(diagonal, points)


def front(data: list[Row]) -> alt.TopLevelMixin:
    """Plans that none beats in money and latency at once."""
    import altair as alt

    base = _chart(data, "Cost against latency").encode(
        x=alt.X("ms:Q", title="worst time [ms]", scale=alt.Scale(zero=False)),
        y=alt.Y("money:Q", title="$/h (GPUs where nothing is priced)", scale=alt.Scale(zero=False)),
        tooltip="words:N",
    )
    line = base.mark_line(interpolate="step-after", color=COLOURS[0], opacity=0.5)
    return alt.layer(line, base.mark_point(size=80, filled=True, color=COLOURS[0]))


def scenarios(data: list[Row]) -> alt.TopLevelMixin:
    """Cost of every scenario beside the plan as it is; what has no plan has no bar."""
    import altair as alt

    base = _chart(data, "Cost of the scenarios").encode(
        y=alt.Y("name:N", title=None, sort=alt.EncodingSortField("place", op="min"), axis=alt.Axis(labelLimit=340))
    )
    bars = base.mark_bar(color=COLOURS[0]).encode(x=alt.X("cost:Q", title="per hour"))
    words = base.transform_filter("datum.cost === null").mark_text(align="left", dx=4).encode(text="status:N", x=alt.datum(0))
    return alt.layer(bars, words).properties(height=max(60, 24 * len(data)))


def growth(data: list[Row]) -> alt.TopLevelMixin:
    """Cost while all loads grow, until no plan is left."""
    import altair as alt

    unit = data[0]["unit"] if data else "period"
    base = _chart(data, "Cost as the load grows").encode(x=alt.X("period:Q", title=f"{unit}s"))
    lines = base.transform_filter("datum.cost !== null").encode(y=alt.Y("cost:Q", title="per hour", scale=alt.Scale(zero=True)))
    end = base.transform_filter("datum.cost === null").mark_rule(color="#b3261e", strokeWidth=2)
    return alt.layer(lines.mark_line(interpolate="step-after", color=COLOURS[0]), lines.mark_point(filled=True, color=COLOURS[0]), end)


def _by_batch(chart: alt.Chart, data: list[Row]) -> alt.TopLevelMixin:
    import altair as alt

    layouts_of = len({row["layout"] for row in data})
    sized = chart.properties(height=max(60, 24 * layouts_of))
    if len({(row["batch"], row["series"]) for row in data}) == 1:
        return sized
    for row in data:
        row["panel"] = f"{row['series']} · batch {row['batch']}"
    return sized.properties(width=WIDTH // 2, title="").facet(
        facet=alt.Facet("panel:N", title=None), columns=2, title="Time per token by layout"
    )
