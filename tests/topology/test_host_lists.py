"""Host lists: ClusterShell's grammar, bounded before it is expanded."""

from __future__ import annotations

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from hypothesis import given
from hypothesis import strategies as st

from planner.topology.host_lists import HostListError, count_hosts, expand_hosts, fold_hosts


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu-node.example", ("gpu-node.example",)),
        ("h100-[01-03]", ("h100-01", "h100-02", "h100-03")),
        ("h[9-11]", ("h9", "h10", "h11")),
        ("n[1-2]m[01-02]", ("n1m01", "n1m02", "n2m01", "n2m02")),
        ("a[1,3-4],b7", ("a1", "a3", "a4", "b7")),
        ("n[0-8/4]", ("n0", "n4", "n8")),
        ("[1101-1102]", ("1101", "1102")),
        ("switch.2.[1-2]", ("switch.2.1", "switch.2.2")),
    ],
)
def test_names_of_a_host_list(text: str, names: tuple[str, ...]) -> None:
    assert expand_hosts(text, 100) == names
    assert count_hosts(text) == len(names)


@pytest.mark.parametrize(
    "text", ["", "a b", "a[1-2", "a]1[", "a[x]", "a[]", "a[3-1]", "@all", "a[1-3]!a2", "a*", "a[1-2]&a1", "$(x)", "a,,b", "é"]
)
def test_what_is_no_host_list(text: str) -> None:
    with pytest.raises(HostListError) as error:
        expand_hosts(text, 100)
    assert error.value.code == "HOST_LIST_INVALID"


@pytest.mark.parametrize("text", ["a[1-101]", "a[0-999999999999]", "a[1-11]b[1-10]", "a[1-60],b[1-60]", "a[" + "1-9," * 30 + "1-9]"])
def test_huge_lists_are_refused_unexpanded(text: str) -> None:
    with pytest.raises(HostListError) as error:
        expand_hosts(text, 100)
    assert error.value.code == "HOST_LIST_TOO_LARGE"


@given(st.integers(0, 1200), st.integers(0, 30), st.integers(0, 4))
def test_plain_ranges_are_read_as_clustershell_reads_them(low: int, more: int, width: int) -> None:
    text = f"n[{low:0{width}d}-{low + more:0{width}d}]x"
    assert expand_hosts(text, 1000) == tuple(NodeSet(text, resolver=RESOLVER_NOGROUP))


@given(st.lists(st.integers(0, 300), min_size=1, max_size=20, unique=True))
def test_folding_and_expanding_are_inverse(numbers: list[int]) -> None:
    names = tuple(f"n{number}" for number in sorted(numbers))
    assert expand_hosts(fold_hosts(names), 1000) == names


@given(
    st.lists(st.tuples(st.integers(0, 120), st.integers(0, 15), st.sampled_from([0, 2, 3])), min_size=1, max_size=4),
    st.sampled_from(["a", "a-", "b1x", ""]),
    st.sampled_from(["", "-ib"]),
)
def test_one_bracket_stands_for_what_clustershell_reads(pieces, prefix: str, suffix: str) -> None:
    ranges = ",".join(f"{low:0{width}d}-{low + more:0{width}d}" if more else f"{low:0{width}d}" for low, more, width in pieces)
    text = f"{prefix}[{ranges}]{suffix}"
    assert expand_hosts(text, 10_000) == tuple(str(name) for name in NodeSet(text, resolver=RESOLVER_NOGROUP))


@given(
    st.sampled_from(["h", "gpu-", "a.b_", "", "n1x", "h100-00012-", "07-"]),
    st.sampled_from(["", "x", ".lan", "-3"]),
    st.integers(0, 4),
    st.lists(st.one_of(st.integers(0, 12), st.integers(0, 1200)), min_size=2, max_size=8),
)
def test_one_series_is_folded_as_clustershell_folds_it(before: str, after: str, width: int, numbers: list[int]) -> None:
    names = [f"{before}{number:0{width}d}{after}" for number in numbers]
    assert fold_hosts(names) == str(NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP))
