"""Target `dynamo`: a DynamoGraphDeployment for every deployment, with a frontend and one worker component a replica.

A component is bound to the nodes of its replica, so replicas are components and not a number. The operator adds what joins the nodes of one: Ray for vLLM's
tensor and pipeline parallelism, data-parallel or rendezvous options, mpirun for TensorRT-LLM.

Source: ai-dynamo/dynamo deploy/operator/api/v1beta1 (components, podTemplate with a container `main`, multinode.nodeCount, at most 25 components),
docs/kubernetes/deployment/multinode-deployment.md, components/src/dynamo/trtllm/backend_args.py; images of release 1.4.0.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from planner.diagnostics import Diagnostic
from planner.launch.commands import Command, Meeting, option
from planner.launch.directory import LaunchFile, LaunchOptions, caution, refusal
from planner.launch.engines import sglang, tensorrt_llm, vllm
from planner.launch.guide import Step
from planner.launch.names import kubernetes_names
from planner.launch.pods import (
    compute_domain,
    container,
    device_cautions,
    image_faults,
    labels_of,
    metadata,
    needs_domain,
    template,
    topology_annotations,
)
from planner.launch.replicas import Replica
from planner.launch.yaml_text import yaml_documents

ENGINES = ("vllm", "sglang", "tensorrt-llm")
FILE = "dynamo.yaml"
VERSION = "1.4.0"
FRAMEWORKS = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "trtllm"}
IMAGES = {"vllm": "vllm-runtime", "sglang": "sglang-runtime", "tensorrt-llm": "tensorrtllm-runtime"}
MOST_COMPONENTS = 25
LONGEST_SUFFIX = len("-0000-0-worker-00000")


def faults(replicas: Sequence[Replica], options: LaunchOptions) -> list[Diagnostic]:
    """What cannot be told to Dynamo or to an engine in it."""
    rules = {"vllm": vllm.companion_faults, "sglang": sglang.companion_faults, "tensorrt-llm": tensorrt_llm.option_faults}
    found = [*image_faults(replicas, options), *(fault for replica in replicas for fault in rules[replica.engine.name](replica))]
    for replica in replicas:
        where = f"deployments.{replica.deployment}.replicas.{replica.number}"
        if not replica.even or len(replica.nodes) != len(replica.shares):
            message = "its nodes run unlike numbers of ranks, and one component has the same pod on every node"
            found.append(refusal("TARGET_CANNOT", message, "launch it with --for kubernetes or leader-worker-set", where))
    return found


def cautions(replicas: Sequence[Replica], options: LaunchOptions) -> list[Diagnostic]:
    """What the operator and its image decide by themselves."""
    found = device_cautions(replicas)
    for replica in replicas:
        where = f"deployments.{replica.deployment}"
        if options.image is None:
            message = (
                f"the image of Dynamo {VERSION} brings its own version of {replica.engine.title}, the plan is for {replica.engine.version}"
            )
            found.append(caution("OPTIONS_OF_ANOTHER_VERSION", message, "name an image with the planned version: --image", where))
        if len(replica.shares) > 1:
            message = f"the operator numbers the ranks of {len(replica.shares)} nodes by itself"
            hint = "the plan's order of nodes is in the annotation planner/gpus; launch it with --for leader-worker-set to pin it"
            found.append(caution("RANK_ORDER_NOT_PINNED", message, hint, where))
        if len(replica.shares) > 1 and replica.engine.name == "vllm" and vllm.own_partition(replica):
            message = "the layers per stage reach the workers of Ray only if the environment is set in their pods, as it is here"
            found.append(
                caution("CHECK_LAYER_PARTITION", message, "look for the layers of every stage in the log of the first start", where)
            )
    return found


def files(replicas: Sequence[Replica], options: LaunchOptions) -> list[LaunchFile]:
    """The manifest."""
    names = kubernetes_names({replica.deployment: LONGEST_SUFFIX for replica in replicas}, options)
    documents: list[tuple[str, Any]] = []
    for deployment, label in names.items():
        own = [replica for replica in replicas if replica.deployment == deployment]
        for first in range(0, len(own), MOST_COMPONENTS - 1):
            part = own[first : first + MOST_COMPONENTS - 1]
            for replica in part:
                if needs_domain(replica):
                    domain = compute_domain(replica, f"{label}-{replica.number}", options)
                    documents.append(("IMEX channels between the nodes of the NVLink domain.", domain))
            documents.append(_graph(deployment, label if first == 0 else f"{label}-{first // (MOST_COMPONENTS - 1)}", label, part, options))
    return [LaunchFile(FILE, yaml_documents(documents))]


def _graph(deployment: str, name: str, label: str, replicas: Sequence[Replica], options: LaunchOptions) -> tuple[str, dict[str, Any]]:
    first = replicas[0]
    image = options.image or f"nvcr.io/nvidia/ai-dynamo/{IMAGES[first.engine.name]}:{VERSION}"
    frontend = {
        "name": "Frontend",
        "type": "frontend",
        "replicas": 1,
        "podTemplate": {"spec": {"containers": [{"name": "main", "image": image}]}},
    }
    workers = [_worker(replica, label, image, options) for replica in replicas]
    lines = [
        f"replica {replica.number}: {replica.degrees}, batch {replica.shape.batch}, on {', '.join(replica.nodes)}" for replica in replicas
    ]
    spec = {"backendFramework": FRAMEWORKS[first.engine.name], "components": [frontend, *workers]}
    document = {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "metadata": metadata(name, options, queued=True),
        "spec": spec,
    }
    return "\n".join([f"deployment: {deployment}", *lines]), document


def _worker(replica: Replica, label: str, image: str, options: LaunchOptions) -> dict[str, Any]:
    name = f"{label}-{replica.number}"
    command = worker_command(replica)
    arguments = ["=".join(words) for words in command.options]
    inside = container(
        replica, replica.shares[0], image, list(command.program), arguments, name="main", environment=command.environment, head=False
    )
    notes = topology_annotations(replica, name, options)
    pods = template(replica, replica.shares, inside, labels_of(replica, label), annotations=notes)
    # The operator mounts /dev/shm by itself (sharedMemorySize).
    for part, key in ((pods["spec"], "volumes"), (pods["spec"]["containers"][0], "volumeMounts")):
        own = [entry for entry in part[key] if entry["name"] != "shm"]
        if own:
            part[key] = own
        else:
            del part[key]
    found: dict[str, Any] = {"name": name, "type": "worker", "replicas": 1, "sharedMemorySize": "16Gi"}
    if len(replica.shares) > 1:
        found["multinode"] = {"nodeCount": len(replica.shares)}
    return {**found, "podTemplate": pods}


def worker_command(replica: Replica) -> Command:
    """Command of a worker, the same on every node of it."""
    if replica.engine.name == "vllm":
        own = vllm.command(replica, 0, Meeting(""), ray=True, positional=False)
        options = [words for words in own.options if words[0] not in {"--distributed-executor-backend", "--data-parallel-backend"}]
        return Command(("python3", "-m", "dynamo.vllm"), tuple(options), own.environment)
    if replica.engine.name == "sglang":
        return sglang.command(replica, 0, Meeting(""), program=("python3", "-m", "dynamo.sglang"))
    return _tensorrt_llm(replica)


def _tensorrt_llm(replica: Replica) -> Command:
    shape, limits = replica.shape, replica.limits
    options = [
        option("--model", replica.checkpoint.model),
        option("--served-model-name", replica.deployment),
        option("--tensor-parallel-size", shape.tp * shape.dp),
    ]
    if shape.pp > 1:
        options.append(option("--pipeline-parallel-size", shape.pp))
    if shape.ep > 1:
        options.append(option("--expert-parallel-size", shape.ep))
    if shape.dp > 1:
        options.append(("--enable-attention-dp",))
    options += [
        option("--gpus-per-node", len(replica.shares[0].gpus)),
        option("--max-batch-size", replica.sequences_per_rank),
        option("--max-num-tokens", limits.max_batched_tokens),
        option("--max-seq-len", limits.max_model_len),
        option("--free-gpu-memory-fraction", f"{tensorrt_llm.free_fraction(replica):g}"),
    ]
    rest = tensorrt_llm.configuration(replica)
    rest.pop("enable_attention_dp", None)
    rest["kv_cache_config"].pop("free_gpu_memory_fraction")
    if not rest["kv_cache_config"]:
        del rest["kv_cache_config"]
    options.append(option("--override-engine-args", json.dumps(rest)))
    return Command(("python3", "-m", "dynamo.trtllm"), tuple(options))


def steps(replicas: Sequence[Replica], options: LaunchOptions) -> list[Step]:
    """What to do, in order."""
    where = "" if options.namespace is None else f" -n {options.namespace}"
    names = kubernetes_names({replica.deployment: LONGEST_SUFFIX for replica in replicas}, options)
    found = [
        Step(
            f"Dynamo's operator is installed (the manifest is for {VERSION}, API nvidia.com/v1beta1):",
            ("kubectl get crd dynamographdeployments.nvidia.com",),
        ),
        Step(
            "Gated models: the secret `hf-token` holds a Hugging Face token (it may be missing for others).",
            (f'kubectl create secret generic hf-token{where} --from-literal=token="$HF_TOKEN"',),
        ),
    ]
    if any(len(replica.shares) > 1 for replica in replicas):
        found.append(Step("Replicas over several nodes need Grove, or LeaderWorkerSet with Volcano, beside the operator.", ()))
    if any(needs_domain(replica) for replica in replicas):
        found.append(
            Step(
                "The NVIDIA DRA driver for GPUs serves ComputeDomain (multi-node NVLink):",
                ("kubectl get crd computedomains.resource.nvidia.com",),
            )
        )
    first = next(iter(names.values()))
    return [
        *found,
        Step("Start:", (f"kubectl apply{where} -f {FILE}", f"kubectl get dynamographdeployment{where} --watch")),
        Step("Ask:", (f"kubectl port-forward{where} service/{first}-frontend 8000:8000", "curl http://localhost:8000/v1/models")),
    ]
