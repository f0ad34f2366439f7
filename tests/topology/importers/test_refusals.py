"""What cannot be read is refused with the reason, its place, and what to do; never with a traceback."""

from __future__ import annotations

import pytest

from planner.diagnostics import PlannerError
from planner.topology.importers.importing import SourceFile, import_topology
from planner.topology.importers.kinds import KINDS, read_file
from planner.topology.importers.lines import text_of

GPU_PAIR = "\tGPU0\tGPU1\nGPU0\t X \t{}\nGPU1\t{}\t X \n"


def refused(text: str, kind: str = "auto"):
    with pytest.raises(PlannerError) as caught:
        read_file(kind, text, "file.txt")
    assert all(item.place is not None and item.place.file == "file.txt" and item.hint for item in caught.value.diagnostics)
    return caught.value.diagnostics[0]


@pytest.mark.parametrize(
    ("kind", "text", "code", "line"),
    [
        ("auto", "hello\n", "KIND_NOT_FOUND", None),
        ("nvidia-smi", "hello\n", "MATRIX_NOT_FOUND", None),
        ("nvidia-smi", "   \n", "EMPTY_FILE", None),
        ("nvidia-smi", "\tGPU0\tGPU1\nGPU0\t X \tNV4\tNV4\nGPU1\tNV4\t X \n", "MATRIX_UNEVEN", 2),
        ("nvidia-smi", "\tGPU0\tGPU1\nGPU0\tNV4\tNV4\nGPU1\tNV4\t X \n", "MATRIX_UNEVEN", 2),
        ("nvidia-smi", "\tGPU0\tGPU1\tGPU2\nGPU0\t X \tNV4\tNV4\n", "MATRIX_TRUNCATED", None),
        ("nvidia-smi", "\tGPU0\tGPU0\nGPU0\t X \tNV4\n", "MATRIX_UNEVEN", None),
        ("rocm-smi", "==== Hops between two GPUs ====\nGPU0 0\n", "LINK_TYPES_MISSING", None),
        ("rocm-smi", "==== Link Type between two GPUs ====\n GPU0 GPU1\nGPU0 0 XGMI\nGPU1 XGMI\n", "MATRIX_UNEVEN", 4),
        ("nccl", "<graphs/>", "NCCL_GRAPH_FILE", 1),
        ("nccl", "\n<lstopo/>", "WRONG_XML", 1),
        ("nccl", "<system><cpu/></system>", "NO_GPUS", 1),
        ("nccl", "<system><cpu></system>", "XML_SYNTAX", 1),
        ("ibnetdiscover", "nothing here", "NO_RECORDS", None),
        ("ibnetdiscover", 'Ca 1 "H-1" # "node001 HCA-1"\n', "NO_CABLES", None),
        ("iblinkinfo", "nothing here", "NO_RECORDS", None),
        ("slurm", "hello\n", "SLURM_SYNTAX", 1),
        ("slurm", "SwitchName=a Nodes=h[1-\n", "HOST_LIST_INVALID", 1),
        ("slurm", "SwitchName=a Nodse=h1\n", "SLURM_SYNTAX", 1),
        ("slurm", "SwitchName=a Switches=b\nSwitchName=b Switches=a\nSwitchName=c Nodes=h1\n", "SWITCH_CYCLE", 1),
        ("slurm", "SwitchName=a Nodes=h1\nSwitchName=a Nodes=h2\n", "DUPLICATE_SWITCH", 2),
        ("slurm", "SwitchName=a Switches=b\nSwitchName=b\n", "NO_HOSTS", None),
        ("slurm", "- topology: x\n  flat: true\n", "NO_HOSTS", None),
        ("topograph", "switches: {}\nblocks: []\n", "TOPOGRAPH_SYNTAX", None),
        ("topograph", "blocks: [", "YAML_SYNTAX", 2),
        ("kubernetes", "{", "JSON_SYNTAX", 1),
        ("kubernetes", '{"kind": "PodList", "items": []}', "WRONG_JSON", None),
        ("kubernetes", '{"kind": "List", "items": [{"kind": "Node", "metadata": {"name": "a"}}]}', "NO_GPU_NODES", None),
        ("kueue", "kind: ConfigMap\n", "NO_TOPOLOGY_OBJECT", None),
        ("kueue", "apiVersion: kueue.x-k8s.io/v1beta1\nkind: Topology\nmetadata: {name: t}\n", "TOPOLOGY_WITHOUT_LEVELS", 1),
    ],
)
def test_the_reason_and_the_place_are_told(kind, text, code, line):
    found = refused(text, kind)
    assert found.code == code
    assert found.place.line == line


def test_a_mixed_up_kind_is_told_with_the_right_one(text_of_input):
    found = refused(text_of_input("nccl_dump.xml"), "slurm")
    assert found.code == "WRONG_KIND"
    assert "import nccl" in found.hint


def test_an_unknown_kind_names_the_nearest():
    with pytest.raises(PlannerError) as caught:
        import_topology("kubernets", [SourceFile("a", "b")])
    assert "kubernetes" in caught.value.diagnostics[0].hint


def test_all_files_that_cannot_be_read_are_told_at_once():
    with pytest.raises(PlannerError) as caught:
        import_topology("auto", [SourceFile("a.txt", "hello"), SourceFile("b.xml", "<graphs/>")])
    assert [item.place.file for item in caught.value.diagnostics] == ["a.txt", "b.xml"]


@pytest.mark.parametrize(
    ("data", "code"), [(b"\x7fELF\0\0", "BINARY_FILE"), (b"GPU0\xff\n", "NOT_UTF8"), (b"\x80\0\0", "BINARY_FILE"), (b"a\0b", "BINARY_FILE")]
)
def test_what_is_no_text_is_refused(data, code):
    with pytest.raises(PlannerError) as caught:
        text_of(data, "file")
    assert caught.value.diagnostics[0].code == code


def test_what_a_windows_shell_redirects_is_read():
    assert text_of("GPU0\r\n".encode("utf-16"), "file") == "GPU0\r\n"


@pytest.mark.parametrize(
    ("matrix", "gpu", "word"),
    [
        (GPU_PAIR.format("NV18", "NV18"), "a100-sxm-80gb", "12"),
        (GPU_PAIR.format("NV12", "NV12"), "l40s-48gb", None),
        (GPU_PAIR.format("NV4", "NV4"), "mi300x-192gb", None),
    ],
)
def test_a_gpu_that_cannot_be_wired_so_is_refused(matrix, gpu, word, imported, tmp_path):
    from planner.catalog.gpus import gpu as gpu_named
    from planner.topology.importers.completing import Assumptions

    with pytest.raises(PlannerError) as caught:
        import_topology("nvidia-smi", [SourceFile("m.txt", matrix)], assumptions=Assumptions(gpu_named(gpu)))
    found = caught.value.diagnostics[0]
    assert found.code == "GPU_CONTRADICTS_FILE"
    assert found.place.file == "m.txt"
    assert word is None or word in found.message


def test_switches_are_never_bridges():
    from planner.catalog.gpus import gpu as gpu_named
    from planner.topology.importers.completing import Assumptions

    matrix = "\tGPU0\tGPU1\tGPU2\nGPU0\tX\tNV12\tNV12\nGPU1\tNV12\tX\tNV12\nGPU2\tNV12\tNV12\tX\n"
    with pytest.raises(PlannerError, match="bridges"):
        import_topology("nvidia-smi", [SourceFile("m.txt", matrix)], assumptions=Assumptions(gpu_named("a100-pcie-80gb")))


def test_a_matrix_needs_the_gpu_type(imported):
    with pytest.raises(PlannerError) as caught:
        imported("nvidia_smi_h100.txt")
    assert caught.value.diagnostics[0].code == "GPU_MODEL_UNKNOWN"
    assert "--gpu" in caught.value.diagnostics[0].hint


def test_a_count_nobody_tells_is_asked_for(imported):
    with pytest.raises(PlannerError) as caught:
        imported("slurm_tree.conf", gpu="l40s-48gb")
    assert caught.value.diagnostics[0].code == "GPU_COUNT_UNKNOWN"


def test_an_order_of_labels_alone_is_nothing_to_plan_on(imported):
    with pytest.raises(PlannerError) as caught:
        imported("kueue.yaml")
    assert caught.value.diagnostics[-1].code == "NOTHING_TO_PLAN"
    assert "kubectl" in caught.value.diagnostics[-1].hint


def test_every_reader_says_what_it_reads():
    assert all(words for _, _, words in KINDS.values())
