"""The manifest of a Kubernetes target: per deployment a Service in front of all its replicas, then every replica's own documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from planner.launch.directory import LaunchFile, LaunchOptions
from planner.launch.names import kubernetes_names
from planner.launch.pod_commands import config_map
from planner.launch.pods import compute_domain, front_service, needs_domain
from planner.launch.replicas import Replica
from planner.launch.yaml_text import yaml_documents

Documents = list[tuple[str, Any]]


def manifest(
    file: str,
    replicas: Sequence[Replica],
    options: LaunchOptions,
    front: str,
    longest_suffix: int,
    documents_of: Callable[[Replica, str, LaunchOptions], Documents],
) -> list[LaunchFile]:
    """The manifest as one file.

    `front` says what the Service of a deployment stands before (`{}` is the deployment's name), `longest_suffix` how many characters names grow by behind the
    deployment's label, which `documents_of` gets with each replica.
    """
    names = kubernetes_names({replica.deployment: longest_suffix for replica in replicas}, options)
    documents: Documents = []
    told: set[str] = set()
    for replica in replicas:
        label = names[replica.deployment]
        if replica.deployment not in told:
            told.add(replica.deployment)
            documents.append((front.format(replica.deployment), front_service(label, options)))
        documents += documents_of(replica, label, options)
    return [LaunchFile(file, yaml_documents(documents))]


def needed_first(replica: Replica, name: str, options: LaunchOptions) -> Documents:
    """Documents that the pods of a replica refer to: TensorRT-LLM's options, and the channels between the nodes of an NVLink domain."""
    found: Documents = []
    if replica.engine.name == "tensorrt-llm":
        found.append(("LLM API options.", config_map(replica, name, options)))
    if needs_domain(replica):
        found.append(("IMEX channels between the nodes of the NVLink domain.", compute_domain(replica, name, options)))
    return found


def remark_of(replica: Replica) -> str:
    """What stands above the document of a replica: its deployment, degrees, batch and nodes."""
    return f"deployment: {replica.deployment}\nreplica {replica.number}: {replica.degrees}, batch {replica.shape.batch}, on {', '.join(replica.nodes)}"
