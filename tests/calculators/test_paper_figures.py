"""The worked examples of the alpha-beta calculator notes and the crossover batch notes, through the commands."""

from __future__ import annotations

import pytest

H100 = "--gpu h100-sxm-80gb --profile hockney"
LLAMA_70B = f"--model llama-3-70b {H100} --weight-bytes 141GB"
LLAMA_405B = f"--model llama-3.1-405b {H100} --weights fp8 --weight-bytes 405GB --batch 32"


def close(value):
    return pytest.approx(value, rel=1e-3)


def printed(value, decimals):
    """Equal after rounding as the source rounds."""
    return pytest.approx(value, abs=0.5 * 10**-decimals * 1.001)


def exchanges(answer, phase, kind="all-reduce"):
    return {item["algorithm"]: item for item in answer["communication"] if item["phase"] == phase and item["exchange"] == kind}


def test_when_tensor_parallelism_stops_helping(ask, figures):
    expected = figures["calculator"]["scaling"]
    curve = ask(f"scaling {LLAMA_70B}")["answers"][0]
    points = curve["points"]
    assert [point["tp"] for point in points] == expected["degrees"]
    for point, total, speedup, efficiency in zip(points, expected["total_ms"], expected["speedup"], expected["efficiency"], strict=True):
        assert point["tpot_s"] * 1e3 == printed(total, 2)
        assert point["speedup"] == printed(speedup, 2)
        assert point["efficiency"] == printed(efficiency, 2 if point["tp"] == 2 else 3)
    assert curve["time_optimal_real"] == close(expected["time_optimal"])
    assert [[item["threshold"], item["tp"]] for item in curve["cost_optimal"]] == expected["cost_optimal"]


def test_the_model_s_own_weights_differ_by_less_than_a_thousandth(ask, figures):
    curve = ask(f"scaling --model llama-3-70b {H100}")["answers"][0]
    for point, total in zip(curve["points"], figures["calculator"]["scaling"]["total_ms"], strict=True):
        # The totals are printed to 0.01 ms, which is more than a thousandth of the smallest.
        assert point["tpot_s"] * 1e3 == pytest.approx(total, rel=1e-3, abs=0.005)
    assert curve["weight_bytes"] == close(141e9)


def test_decode_of_a_70b(ask, figures):
    expected = figures["calculator"]["decode"]
    answer = ask(f"estimate {LLAMA_70B} --tp 8 --batch 32")["answers"][0]
    found = exchanges(answer, "decode")
    for name, key in (("ring", "ring"), ("tree", "tree"), ("one-shot", "one_shot")):
        assert found[name]["message_bytes"] == expected["message"]
        assert found[name]["volume_per_call_bytes"] == close(expected["volume_per_all_reduce"])
        assert found[name]["volume_bytes"] == close(expected["volume_total"])
        assert found[name]["calls"] == expected["all_reduces"]
        assert found[name]["hops"] == expected[key]["hops"]
        assert found[name]["latency_s"] == close(expected[key]["latency"])
        assert found[name]["transfer_s"] == close(expected["ring"]["transfer"])
        assert found[name]["total_s"] == close(expected[key]["total"])
    assert [name for name, item in found.items() if item["chosen"]] == ["one-shot"]
    assert answer["times"]["compute_s"] == close(expected["compute"])
    assert answer["times"]["overhead"] == close(expected["one_shot"]["overhead"])
    assert found["tree"]["total_s"] / answer["times"]["compute_s"] == close(expected["tree"]["overhead"])


def test_prefill_of_a_70b(ask, figures):
    expected = figures["calculator"]["prefill"]
    answer = ask(f"estimate {LLAMA_70B} --tp 8 --parameters 70e9 --prompt-tokens 2048")["answers"][0]
    found = exchanges(answer, "prefill")
    assert list(found) == ["ring"]
    ring = found["ring"]
    assert ring["message_bytes"] == expected["message"]
    assert ring["volume_bytes"] == close(expected["volume_total"])
    assert ring["latency_s"] == close(expected["latency"])
    assert ring["transfer_s"] == close(expected["transfer"])
    assert ring["total_s"] == close(expected["total"])
    times = answer["times"]
    assert times["prefill_compute_s"] == close(expected["compute"])
    assert times["prefill_comm_s"] / times["prefill_compute_s"] == close(expected["overhead"])
    assert times["ttft_s"] == close(expected["compute"] + expected["total"])


def test_tensor_parallelism_across_nodes_is_priced_and_flagged(ask, figures):
    expected = figures["calculator"]["across"]
    answer = ask(f"estimate {LLAMA_405B} --tp 16")["answers"][0]
    half = exchanges(answer, "decode")["half-ring-across"]
    assert half["hops"] == expected["hops"]
    assert half["latency_s"] == close(expected["latency"])
    assert half["volume_bytes"] * 2 == close(expected["volume_total"])
    assert half["transfer_s"] == close(expected["transfer"])
    assert half["total_s"] == close(expected["total"])
    assert answer["times"]["compute_s"] == close(expected["compute"])
    assert answer["times"]["overhead"] == close(expected["overhead"])
    assert "CROSS_NODE_TP" in {item["code"] for item in answer["findings"]}
    assert answer["checks"][7]["verdict"] == "fail"
    assert answer["recommendation"]["shape"]["tp"] <= 8


def test_pipeline_across_nodes(ask, figures):
    expected = figures["calculator"]["pipelined"]
    answer = ask(f"estimate {LLAMA_405B} --tp 8 --pp 2")["answers"][0]
    hop = exchanges(answer, "decode", "pipeline hop")["send"]
    assert hop["link"] == "infiniband-ndr-400"
    assert hop["volume_bytes"] == expected["pp_volume"]
    assert hop["total_s"] == close(expected["pp_time"])
    assert answer["times"]["compute_s"] == close(expected["compute"])
    assert answer["times"]["overhead"] == pytest.approx(expected["overhead_one_shot"], rel=3e-3)
    tree = exchanges(answer, "decode")["tree"]["total_s"] + hop["total_s"]
    assert tree / answer["times"]["compute_s"] == pytest.approx(expected["overhead_tree"], rel=3e-3)
    assert answer["times"]["bubble"] == close(expected["bubble"])


def test_crossover_batches(ask, figures):
    expected = figures["crossover"]
    links = {450e9: "nvlink4", 25e9: "25GB/s", 31.5e9: "pcie4", 63e9: "pcie5", 64e9: "64GB/s", 50e9: "50GB/s"}
    answers = ask(f"crossover --model llama-2-7b {H100} --link {','.join(links[speed] for speed in expected['links'])}")["answers"]
    assert [answer["link_bandwidth_bytes_s"] for answer in answers] == expected["links"]
    assert [round(answer["crossover_batch_notes"]) for answer in answers] == expected["batches"]
    assert answers[0]["layer_parameters_notes"] == expected["layer_parameters_7b"]
    by_speed = {answer["link_bandwidth_bytes_s"]: answer for answer in answers}
    for row in expected["per_token"]:
        for batch, milliseconds in zip((1, 32, 256), row["ms"], strict=True):
            found = by_speed[row["link"]][f"communication_s_notes_b{batch}"] * 1e3
            assert found == pytest.approx(milliseconds, rel=0.03 if milliseconds < 0.1 else 2e-3)


def test_the_notes_count_a_70b_without_grouped_heads(ask, figures):
    answer = ask(f"crossover --model llama-2-70b {H100}")["answers"][0]
    assert answer["layer_parameters_notes"] == figures["crossover"]["layer_parameters_70b"]
    assert answer["layer_parameters_full"] < answer["layer_parameters_notes"]


@pytest.mark.parametrize(("stages", "microbatches"), [(2, 4), (4, 4), (8, 8)])
def test_bubbles_of_the_study(ask, figures, stages, microbatches):
    line = f"estimate --model llama-2-7b --gpu a100-sxm-80gb --profile hockney --pp {stages} --microbatches {microbatches}"
    expected = figures["study"]["bubbles"][f"pp{stages}_m{microbatches}"]
    assert ask(line)["answers"][0]["times"]["bubble"] == pytest.approx(expected, abs=5e-5)
    chunks = 4
    interleaved = ask(f"{line} --interleave {chunks}")["answers"][0]["times"]["bubble"]
    assert interleaved == close((stages - 1) / (chunks * microbatches + stages - 1))


@pytest.mark.parametrize("name", ["pcie3", "nvlink3", "nvlink4"])
def test_tails_of_the_study(ask, figures, name):
    """At the study's ratio of compute to communication the map prints the formula's tail, and draws agree with it."""
    ratio, _, by_formula = figures["study"]["tails"][name]
    line = "--model llama-2-7b --gpu a100-sxm-80gb --profile hockney --tp 8 --link pcie3 --alpha 1ns"
    tree = exchanges(ask(f"estimate {line}")["answers"][0], "decode")["tree"]
    compute = ask(f"estimate {line}")["answers"][0]["times"]["compute_s"]
    bandwidth = tree["volume_bytes"] / (compute / ratio - tree["latency_s"])
    line += f" --bandwidth {bandwidth}B/s"
    cell = ask(f"regimes {line}")["answers"][0]
    assert cell["decode_compute_over_communication"] == close(ratio)
    assert cell["decode_p99_over_p50"] == pytest.approx(by_formula, abs=6e-4)
    drawn = ask(f"estimate {line} --jitter 0.12 --jitter-compute 0")["answers"][0]["tails"]
    assert drawn["p99"]["tpot_s"] / drawn["p50"]["tpot_s"] == pytest.approx(by_formula, rel=0.03)
