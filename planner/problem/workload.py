"""What is asked of a deployment: lengths of a request, or buckets of lengths with their shares, and the load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction as Ratio
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field

from planner.problem.bucket_faults import workload_faults
from planner.problem.fault import Fault
from planner.problem.parts import Name, ProblemPart
from planner.quantities import Fraction, PerSecond, Seconds, Tokens

# Bounds that no deployment reaches and slips of the pen do: beyond them a number is refused instead of planned for.
MOST_TOKENS = 10_000_000
MOST_SEQUENCES = 1_000_000
MOST_BUCKETS = 100
MOST_IMAGES = 10_000
LARGEST_DEGREE = 4096

FINE_SLICES = 5040
"""Slices of a bucket where none are asked for: fine, and a number that halves, thirds and all parts up to tenths divide."""

WHOLE = ""
"""Name under which a figure stands that is not given by bucket."""

Degree = Annotated[int, Field(strict=True, ge=1, le=LARGEST_DEGREE)]


class Bucket(ProblemPart):
    """Requests of one length, and their share of all."""

    name: Name | None = Field(default=None, description="Name of the bucket; absent = its lengths, 2048-512")
    prompt_tokens: Tokens = Field(ge=1, le=MOST_TOKENS, description="Mean prompt length of these requests [tokens]")
    output_tokens: Tokens = Field(ge=1, le=MOST_TOKENS, description="Mean output length of these requests [tokens]")
    share: Annotated[Fraction, Field(gt=0)] = Field(description="Share of the request rate or of the concurrency, 25% for example")

    @property
    def title(self) -> str:
        """Its name, or its lengths where it has none."""
        return self.name or f"{self.prompt_tokens}-{self.output_tokens}"

    @property
    def part(self) -> Ratio:
        """Share as it is written: 0.1 is a tenth."""
        return Ratio(repr(float(self.share)))


class Workload(ProblemPart):
    """What is asked of a deployment: lengths of a request, and either sequences at once or requests per second."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["concurrency"]}, {"required": ["request_rate"]}],
            "anyOf": [{"required": ["prompt_tokens", "output_tokens"]}, {"required": ["buckets"]}],
        }
    )

    # The defaults stand where lengths are given by bucket.
    prompt_tokens: Tokens = Field(
        default=0, ge=0, le=MOST_TOKENS, description="Mean prompt length of a request [tokens]", json_schema_extra={"minimum": 1}
    )
    output_tokens: Tokens = Field(
        default=0, ge=0, le=MOST_TOKENS, description="Mean output length of a request [tokens]", json_schema_extra={"minimum": 1}
    )
    concurrency: Annotated[int, Field(strict=True, ge=1, le=MOST_SEQUENCES)] | None = Field(
        default=None, description="Sequences served at once; give this or request_rate"
    )
    request_rate: Annotated[PerSecond, Field(gt=0, le=MOST_SEQUENCES)] | None = Field(
        default=None, description="Requests offered, 4/s or 240/min; give this or concurrency"
    )
    buckets: tuple[Bucket, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=MOST_BUCKETS,
        description="Lengths with their shares, in place of prompt_tokens and output_tokens",
    )
    images: Annotated[int, Field(strict=True, ge=0, le=MOST_IMAGES)] | None = Field(
        default=None, description="Images of a request, for models with cross-attention to them; absent = 1, 0 = text alone"
    )
    slices: Annotated[int, Field(strict=True, ge=1, le=FINE_SLICES)] | None = Field(
        default=None, description="Equal slices into which every bucket may be split between shapes, 1 = not at all; absent = freely"
    )

    @classmethod
    def faults(cls, given: Mapping[str, Any]) -> Iterator[Fault]:
        """Exactly one load is given, and lengths once."""
        return workload_faults({key: value for key, value in given.items() if value not in (0, None)})

    @property
    def lengths(self) -> tuple[tuple[int, int], ...]:
        """Prompt and output tokens of every kind of request [tokens]."""
        return tuple((bucket.prompt_tokens, bucket.output_tokens) for bucket in self.buckets or ()) or (
            (self.prompt_tokens, self.output_tokens),
        )

    @property
    def longest(self) -> int:
        """Tokens of the longest request, prompt and output."""
        return max(prompt + output for prompt, output in self.lengths)


def _by_bucket(value: Any) -> Any:
    return value if isinstance(value, Mapping) else {WHOLE: value}


_Rate = Annotated[PerSecond, Field(ge=0, le=MOST_SEQUENCES)]
_Sequences = Annotated[int, Field(strict=True, ge=0, le=MOST_SEQUENCES)]
Rates = Annotated[dict[str, _Rate], BeforeValidator(_by_bucket, json_schema_input_type=_Rate | dict[str, _Rate])]
Counts = Annotated[dict[str, _Sequences], BeforeValidator(_by_bucket, json_schema_input_type=_Sequences | dict[str, _Sequences])]


class Measured(ProblemPart):
    """What one replica of a shape was measured to serve within the targets."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["rate"]}, {"required": ["sequences"]}]})

    gpu: str = Field(min_length=1, max_length=200, description="GPU type that was measured")
    tp: Degree = Field(default=1, description="Tensor parallel degree of the replica")
    pp: Degree = Field(default=1, description="Pipeline stages of the replica")
    ep: Degree = Field(default=1, description="Expert parallel degree of the replica")
    dp: Degree = Field(default=1, description="Data-parallel attention ranks of the replica")
    rate: Rates | None = Field(default=None, description="Requests one replica serves, 4/s, or by bucket {short: 9/s, long: 2/s}; 0 = none")
    sequences: Counts | None = Field(default=None, description="Sequences one replica holds, or by bucket {short: 64, long: 8}; 0 = none")
    tpot: Annotated[Seconds, Field(gt=0)] | None = Field(default=None, description="Time per output token that was measured with it")
    ttft: Annotated[Seconds, Field(gt=0)] | None = Field(default=None, description="Time to first token that was measured with it")
    source: str = Field(default="", max_length=1000, description="Where the figures come from")

    @property
    def degrees(self) -> tuple[int, int, int, int]:
        """Degrees tp, pp, ep, dp of the replica."""
        return self.tp, self.pp, self.ep, self.dp

    def figure(self, bucket: str = WHOLE) -> float:
        """Requests/s or sequences of one replica, for a bucket where they are given so; 0 where none were."""
        given: Mapping[str, float] = self.rate if self.rate is not None else (self.sequences or {})
        return float(given.get(bucket, 0.0))


def measured_for(figures: tuple[Measured, ...], gpu: str, degrees: tuple[int, int, int, int]) -> Measured | None:
    """Figures of one GPU type (by its name in the catalog) and shape; None where there are none."""
    return next((entry for entry in figures if entry.gpu == gpu and entry.degrees == degrees), None)
