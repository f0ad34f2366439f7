"""What the communication cost study found, in orderings: a sensible model must agree, whatever its constants."""

from __future__ import annotations

import pytest

MODELS = ("gpt2", "llama-2-7b", "llama-2-13b", "llama-2-70b", "falcon-180b")
CATALOG = ("pcie3", "pcie4", "nvlink3", "nvlink4")
STUDY = ("study:pcie3_x16", "study:pcie4_x16", "study:nvlink3_a100", "study:nvlink4_h100")
MEMORIES = (8, 24, 40, 80)


@pytest.mark.parametrize("links", [CATALOG, STUDY], ids=["catalog", "study"])
@pytest.mark.parametrize("gpu", ["a100-sxm-80gb", "h100-sxm-80gb"])
def test_efficiency_rises_with_the_interconnect(ask, links, gpu):
    """Whole passes over prompts, as the study measured them, on 8 GPUs."""
    line = f"regimes --model {','.join(MODELS)} --gpu {gpu} --link {','.join(links)} --tp 8 --prompt-tokens 512,2048 --profile hockney"
    cells = ask(line)["answers"]
    for model in MODELS:
        for prompt in (512, 2048):
            mine = [cell for cell in cells if cell["model"] == model and cell["prompt_tokens"] == prompt]
            efficiencies = [cell["prefill_efficiency"] for cell in mine]
            assert len(efficiencies) == 4
            assert efficiencies == sorted(efficiencies)
            assert len(set(efficiencies)) == 4
            assert efficiencies[0] < 0.37
            assert [cell["decode_efficiency"] for cell in mine] == sorted(cell["decode_efficiency"] for cell in mine)


def test_the_regime_changes_with_the_interconnect(ask):
    """A 7B is bound by communication over PCIe and by compute over NVLink."""
    cells = ask(f"regimes --model llama-2-7b --gpu a100-sxm-80gb --link {','.join(CATALOG)} --tp 8 --profile hockney")["answers"]
    assert [cell["prefill_regime"] for cell in cells] == ["communication", "communication", "compute", "compute"]


@pytest.mark.parametrize("profile", ["hockney", "calibrated"])
def test_pipelines_are_slower_than_tensor_parallelism_for_one_sequence(ask, profile):
    base = f"estimate --model llama-2-7b --gpu a100-sxm-80gb --batch 1 --profile {profile}"
    tensor = ask(f"{base} --tp 8")["answers"][0]["times"]["tpot_s"]
    for stages in (2, 4, 8):
        ratio = ask(f"{base} --pp {stages}")["answers"][0]["times"]["tpot_s"] / tensor
        # The study prints 4 to 6 times; measured constants leave less, since kernels' own time does not shrink with TP.
        assert 4.0 < ratio < 6.0 if profile == "hockney" else ratio > 1.5


def test_minimum_gpus_by_memory(ask, figures):
    """The study's table, but for a 70B on 40 GB, where its own 40.5 GB a GPU on four contradicts the eight it prints."""
    expected = dict(figures["study"]["minimum_gpus"])
    expected["llama_70b"] = [expected["llama_70b"][0], expected["llama_70b"][1], 4, expected["llama_70b"][3]]
    line = f"memory --model {','.join(MODELS)} --weights fp16 --gpu-memory {','.join(f'{size}GB' for size in MEMORIES)}"
    answers = ask(f"{line} --prompt-tokens 128 --output-tokens 1")["answers"]
    found = {}
    for answer in answers:
        found.setdefault(answer["model"], []).append(answer["tp_by_memory"] or 0)
    assert list(found.values()) == list(expected.values())


def test_falcon_cannot_be_cut_by_sixteen(ask):
    """232 query heads: memory alone says 16 GPUs of 40 GB, the engine takes a pipeline on fewer."""
    line = "memory --model falcon-180b --weights fp16 --gpu-memory 40GB"
    answer = ask(line)["answers"][0]
    assert answer["tp_by_memory"] == 16
    assert answer["smallest_gpus"] <= 16
    assert answer["layouts"][0]["pp"] > 1
    asked = ask(f"{line} --tp 16")["answers"][0]["layouts"][0]
    assert not asked["legal"]
    assert asked["fits"]
    assert "HEADS_NOT_DIVISIBLE" in {item["code"] for item in asked["findings"]}
