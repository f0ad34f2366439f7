from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.architecture import Quantization
from planner.catalog.gpus import gpu
from planner.catalog.step_times import of_dtype, read_share, step_constants, step_engines
from planner.cost.compute import distinct_share, fullest_rank, multiplied_parameters, peak_flops
from planner.cost.evaluation import evaluate
from planner.cost.power_law import fit_power_law
from planner.cost.setting import Precision
from planner.diagnostics import PlannerError


def test_expected_experts_by_hand():
    # DeepSeek-V3: 8 of 256. One token touches 8, two touch 16 less the expected overlap 8 x 8 / 256.
    share = distinct_share(256, 8, np.array([1.0, 2.0, 1e6]))
    np.testing.assert_allclose(share * 256, [8.0, 15.75, 256.0])


@given(st.integers(2, 512), st.integers(1, 16), st.floats(0.3, 50.0))
def test_uneven_routing_touches_fewer_experts(experts, active, evenness):
    tokens = np.array([1.0, 2.0, 7.0, 64.0, 1000.0])
    even, uneven = distinct_share(experts, active, tokens), distinct_share(experts, active, tokens, evenness)
    assert (uneven <= even + 1e-12).all()
    assert (np.diff(uneven) >= 0.0).all()
    assert (uneven > 0.0).all()
    assert (uneven <= 1.0).all()


def test_the_fullest_of_many_draws_is_as_simulated():
    generator = np.random.default_rng(0)
    for ranks in (2, 8, 64):
        largest = generator.normal(1.0, 0.1, (20000, ranks)).max(axis=1).mean()
        assert fullest_rank(np.array([0.1]), np.array([float(ranks)]))[0] == pytest.approx(largest, rel=0.01)
    assert fullest_rank(np.array([0.1]), np.array([1.0]))[0] == 1.0


def test_formats_without_arithmetic_are_multiplied_in_sixteen_bits():
    a100, h100 = gpu("a100-sxm-80gb"), gpu("h100-sxm-80gb")
    assert peak_flops(a100, "fp8") == a100.flops["bf16"].value
    assert peak_flops(h100, "fp8") == h100.flops["fp8"].value
    assert peak_flops(h100, "int4") == h100.flops["bf16"].value


def test_multiplied_parameters_of_a_dense_layer(dense_model):
    # 70B shapes: q and o 64 x 128 x 8192, k and v 8 x 128 x 8192, three matrices of 28672 x 8192; norms are not counted apart from their elements.
    layer = 2 * 64 * 128 * 8192 + 2 * 8 * 128 * 8192 + 3 * 28672 * 8192
    assert multiplied_parameters(dense_model) == pytest.approx(64 * layer, rel=1e-4)


def test_a_power_law_is_found_again_with_its_error():
    rows = [(hidden, batch, length) for hidden in (1024, 4096) for batch in (1, 8) for length in (128, 2048)]
    noise = [1.0, 1.02, 0.98, 1.0, 1.01, 0.99, 1.0, 1.03]
    lines = ["hidden_size,batch,sequence_length,milliseconds"]
    lines += [f"{d},{b},{s},{1e3 * 3e-12 * (d * d * b * s) ** 0.85 * e}" for (d, b, s), e in zip(rows, noise, strict=True)]
    law = fit_power_law("\n".join(lines))
    assert law.exponent == pytest.approx(0.85, abs=0.01)
    assert law.rows == 8
    assert 0.0 < law.median_error < law.largest_error < 0.04
    predicted = law.seconds(np.array([4096.0]), np.array([8.0]), np.array([2048.0]))[0]
    assert predicted == pytest.approx(3e-12 * (4096.0**2 * 8 * 2048) ** 0.85, rel=0.04)


def test_every_faulty_line_of_a_power_law_table_is_told():
    text = "hidden_size,batch,sequence_length,seconds\n1024,1,128,0.1\n1024,x,128,0.1\n-1,1,128,0.1\n"
    with pytest.raises(PlannerError) as caught:
        fit_power_law(text)
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == ["BAD_POWER_LAW_DATA"] * 2
    with pytest.raises(PlannerError, match="no column"):
        fit_power_law("hidden_size,batch\n1,2\n")
    with pytest.raises(PlannerError, match="two different sizes"):
        fit_power_law("hidden_size,batch,sequence_length,seconds\n1024,1,128,0.1\n1024,1,128,0.2\n")


@pytest.mark.parametrize("engine", [*step_engines(), "generic"])
@pytest.mark.parametrize("architecture", ["hopper", "blackwell", "ampere", "cdna3"])
def test_constants_are_plausible_and_sourced(engine, architecture):
    constants = step_constants(engine, architecture)
    assert constants.source
    assert constants.basis in {"measured", "assumed"}
    for table in (constants.weight_read, constants.multiply, constants.expert_read, constants.expert_multiply):
        assert all(0.0 < share <= 1.0 for share in table.values())
    assert 0.0 < constants.kv_read <= 1.0
    assert 0.0 < constants.attend <= 1.0
    assert 1e-6 < constants.layer < 2e-4
    assert (constants.rows > 0) == (constants.p90_error > 0.0)


def test_generations_nobody_measured_are_told_apart():
    known, unknown = step_constants("vllm", "hopper"), step_constants("vllm", "cdna3")
    assert known.basis == "measured"
    assert unknown.basis == "assumed"
    assert "hopper" in unknown.source
    assert unknown.layer == known.layer
    assert step_constants("lmdeploy", "hopper").engine == "generic"
    assert step_constants("TensorRT-LLM", "hopper").engine == "trtllm"


def test_a_format_without_an_entry_borrows_the_nearest():
    assert of_dtype({"bf16": 1.0, "fp8": 2.0, "nvfp4": 3.0}, "int4") == 3.0
    assert of_dtype({"bf16": 1.0, "fp8": 2.0}, "int8") == 2.0
    assert of_dtype({"fp8": 2.0}, "fp16") == 2.0


def test_an_engine_s_version_picks_its_constants():
    old, new, plain = (step_constants(name, "hopper") for name in ("tensorrt-llm 0.14.0", "TensorRT-LLM 1.1", "tensorrt-llm"))
    assert old.engine == new.engine == plain.engine == "trtllm"
    assert old.rows > 0
    assert old.decode_exchange > 1.0
    assert new.weight_read == plain.weight_read
    assert new.sequence > old.sequence  # compiled engines, no Python between steps
    # A version nobody measured on this generation borrows another one's constants, and a versioned name is still its engine.
    assert step_constants("tensorrt-llm 1.1", "ampere").basis == "assumed"
    assert step_constants("tensorrt-llm 0.14", "ampere").basis == "measured"
    assert step_constants("vllm 0.12", "hopper") == step_constants("vllm", "hopper")


@given(st.floats(0.05, 1.0), st.floats(0.2e12, 20e12), st.floats(1.0, 3.0))
def test_kernels_never_read_slower_from_a_faster_memory(share, bandwidth, more):
    constants = step_constants("trtllm", "blackwell")
    slow = bandwidth * read_share(constants, share, bandwidth)
    fast = bandwidth * more * read_share(constants, share, bandwidth * more)
    assert fast >= slow * (1.0 - 1e-12)
    assert read_share(constants, share, bandwidth) >= share


def test_a_slow_memory_bounds_what_kernels_bound_on_a_fast_one():
    constants = step_constants("trtllm", "blackwell")
    narrow = constants.weight_read["nvfp4"]
    assert narrow < 0.65
    assert read_share(constants, narrow, gpu("b200-180gb").memory_bandwidth.value) == pytest.approx(narrow)
    assert read_share(constants, narrow, gpu("rtx-pro-6000-96gb").memory_bandwidth.value) > 0.85


def test_fp8_scaled_by_blocks_is_multiplied_apart(dense_model, setting_of, shapes_of):
    shapes = shapes_of((1, 1, 1, 1, 512))
    plain = Quantization("fp8", "fp8", scale_bytes=4.0)
    blocks = Quantization("fp8", "fp8", block=(128, 128), scale_bytes=4.0)
    one, other = (
        evaluate(setting_of(dense_model, engine="tensorrt-llm", precision=Precision("fp8", "fp8", "bf16", scheme)), shapes)
        for scheme in (plain, blocks)
    )
    assert other.compute[0] > 1.1 * one.compute[0]
