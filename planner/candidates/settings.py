"""What a deployment asks on a pool, resolved to the numbers the physics takes: every default is decided here, in one place."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from planner.candidates.batches import Targets
from planner.catalog.engines import Engine, engine
from planner.catalog.gpus import Gpu
from planner.catalog.step_times import step_constants
from planner.cost.setting import Setting
from planner.problem.documents import Deployment
from planner.problem.load import LoadedProblem
from planner.problem.precision import resolve_precisions
from planner.problem.workload import MOST_SEQUENCES, Bucket, Measured
from planner.topology.fabric import Pool


@dataclass(frozen=True)
class PoolSetting:
    """One deployment in one precision on one pool.

    `sequences_per_rank` is the engine's own limit of running sequences on one data-parallel rank. `concurrency` is the load of a closed loop with
    its headroom, None where a rate is offered. `buckets` are those of the workload, of which the setting describes the longest.
    """

    deployment: int
    pool: Pool
    engine: Engine
    setting: Setting
    targets: Targets
    sequences_per_rank: int
    concurrency: int | None
    buckets: tuple[Bucket, ...] = ()
    measured: tuple[Measured, ...] = ()

    def of_bucket(self, number: int) -> PoolSetting:
        """The same question for the requests of one bucket alone."""
        bucket = self.buckets[number]
        lengths = replace(self.setting, prompt_tokens=float(bucket.prompt_tokens), output_tokens=float(bucket.output_tokens))
        # How many sequences a replica holds of one bucket says how much of it they take, not how many there are.
        return replace(self, setting=lengths, concurrency=None if self.concurrency is None else MOST_SEQUENCES)


def pool_settings(loaded: LoadedProblem, index: int, pool: Pool) -> Iterator[PoolSetting]:
    """Settings of deployment `index` on `pool`, one for each precision that may be used there."""
    deployment = loaded.problem.deployments[index]
    architecture = loaded.architectures[index]
    rules = engine(deployment.engine.name, deployment.engine.version)
    workload, slo = deployment.workload, deployment.slo
    prompt, output = max(workload.lengths, key=sum)
    concurrency = None if workload.concurrency is None else math.ceil(workload.concurrency * (1.0 + deployment.headroom))
    constants = step_constants(f"{rules.name} {rules.version}", pool.gpu.architecture)
    targets = Targets(
        tpot=math.inf if slo is None or slo.tpot is None else slo.tpot,
        ttft=math.inf if slo is None or slo.ttft is None else slo.ttft,
        min_efficiency=deployment.min_efficiency or 0.0,
        percentile=None if slo is None else slo.percentile,
        jitter=(constants.jitter_compute, constants.jitter_exchange),
        seed=loaded.problem.seed,
    )
    for precision in resolve_precisions(deployment, architecture, rules, pool.gpu):
        setting = Setting(
            architecture=architecture,
            precision=precision,
            engine=rules.name if deployment.engine.version is None else f"{rules.name} {deployment.engine.version}",
            gpu=pool.gpu,
            paths=pool.paths,
            prompt_tokens=float(prompt),
            output_tokens=float(output),
            max_batched_tokens=batched_tokens(deployment, rules, pool.gpu),
            max_model_len=model_length(deployment),
            gpu_memory_utilization=utilization(deployment, rules),
            prefix_cache_hit_rate=deployment.memory.prefix_cache_hit_rate if deployment.memory is not None else 0.0,
            profile=loaded.problem.profile,
            max_num_seqs=sequences_asked(deployment),
        )
        buckets, measured = workload.buckets or (), deployment.throughput or ()
        slots = sequences_asked(deployment) or rules.sequences(pool.gpu)
        yield PoolSetting(index, pool, rules, setting, targets, slots, concurrency, buckets, measured)


def batched_tokens(deployment: Deployment, rules: Engine, gpu: Gpu) -> int:
    """Tokens of one prefill chunk: as asked, else the engine's default."""
    asked = deployment.memory.max_batched_tokens if deployment.memory is not None else None
    return asked if asked is not None else rules.batched_tokens(gpu, model_length(deployment))


def sequences_asked(deployment: Deployment) -> int:
    """Most running sequences the engine is started for on a data-parallel rank, 0 = its default."""
    return (deployment.memory.max_num_seqs or 0) if deployment.memory is not None else 0


def model_length(deployment: Deployment) -> int:
    """Longest context reserved for: as asked, else just what a request of the workload needs."""
    asked = deployment.memory.max_model_len if deployment.memory is not None else None
    return asked if asked is not None else deployment.workload.longest


def utilization(deployment: Deployment, rules: Engine) -> float:
    """Share of the reported memory that the engine may use: as asked, else the engine's default."""
    asked = deployment.memory.gpu_memory_utilization if deployment.memory is not None else None
    return asked if asked is not None else rules.gpu_memory_utilization
