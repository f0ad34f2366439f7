"""Scale-up scopes: the sets of GPUs a tensor-parallel group may live in, as numpy columns."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from planner.topology.inventory import FREE, GpuId, Inventory, first_rows
from planner.topology.levels import Labels

# How a scope that is one host is called after its wiring; a domain of several hosts has a name of its own.
_SUFFIX = {"nvswitch": "nvlink", "nvlink-mesh": "nvlink", "xgmi": "xgmi", "ici": "ici"}


class ScopeTable:
    """The D scale-up scopes of a fabric: NVSwitch or NVL domains, else hosts.

    Columns [D]: `pool` (index into the fabric's pools), `capacity` (GPUs), `free` (neither taken nor failed), and the component numbers `leaf`,
    `spine` and `fabric` the scope falls into. Scopes are numbered in the order of their first node.
    """

    def __init__(self, inventory: Inventory, pool_of_node: Labels) -> None:
        self._inventory = inventory
        scopes = int(inventory.scope.max()) + 1 if len(inventory.scope) else 0
        gpus = np.diff(inventory.first_gpu)
        free = np.add.reduceat((inventory.state == FREE).astype(np.int64), inventory.first_gpu[:-1]) if len(gpus) else gpus
        first = first_rows(inventory.scope)
        self.pool: Labels = pool_of_node[first]
        self.capacity: Labels = np.bincount(inventory.scope, weights=gpus, minlength=scopes).astype(np.int64)
        self.free: Labels = np.bincount(inventory.scope, weights=free, minlength=scopes).astype(np.int64)
        self.leaf: Labels = inventory.leaf[first]
        self.spine: Labels = inventory.spine[first]
        self.fabric: Labels = inventory.fabric[first]
        self._first = first

    def __len__(self) -> int:
        return len(self.capacity)

    @cached_property
    def _rows(self) -> tuple[Labels, Labels]:
        """Node rows sorted by scope, and where each scope starts [D + 1]."""
        order = np.argsort(self._inventory.scope, kind="stable")
        counts = np.bincount(self._inventory.scope, minlength=len(self))
        return order, np.concatenate(([0], np.cumsum(counts))).astype(np.int64)

    def rows(self, scope: int) -> list[int]:
        """Rows of the scope's nodes in the inventory."""
        order, starts = self._rows
        found: list[int] = order[starts[scope] : starts[scope + 1]].tolist()
        return found

    def nodes(self, scope: int) -> tuple[str, ...]:
        """Names of the scope's nodes."""
        return tuple(self._inventory.names[row] for row in self.rows(scope))

    def name(self, scope: int) -> str:
        """Name of the scope: that of its NVLink domain, else the host's followed by the way its GPUs are joined (h100-01/nvlink)."""
        row = int(self._first[scope])
        group = self._inventory.groups[int(self._inventory.group[row])]
        if group.nvlink_domain is not None:
            return group.nvlink_domain
        return f"{self._inventory.names[row]}/{_SUFFIX[group.wiring.scale_up] if group.wiring.whole_host else 'pcie'}"

    def gpus(self, scope: int) -> tuple[GpuId, ...]:
        """All GPUs of the scope, taken and failed ones too."""
        inventory = self._inventory
        return tuple(
            GpuId(inventory.names[row], gpu)
            for row in self.rows(scope)
            for gpu in range(int(inventory.first_gpu[row + 1] - inventory.first_gpu[row]))
        )

    def free_gpus(self, scope: int) -> tuple[GpuId, ...]:
        """GPUs of the scope that are neither taken nor failed, by node and index."""
        inventory = self._inventory
        found: list[GpuId] = []
        for row in self.rows(scope):
            start, end = int(inventory.first_gpu[row]), int(inventory.first_gpu[row + 1])
            name = inventory.names[row]
            found.extend(GpuId(name, gpu) for gpu in np.flatnonzero(inventory.state[start:end] == FREE).tolist())
        return tuple(found)

    def sub_scopes(self, scope: int) -> tuple[tuple[GpuId, ...], ...]:
        """Free GPUs of the scope by pair or mesh; GPUs outside every group come one by one.

        Empty where the scope has no sub-level. Together the sub-scopes hold each free GPU once; groups without a free GPU are left out.
        """
        row = int(self._first[scope])
        wiring = self._inventory.groups[int(self._inventory.group[row])].wiring
        if not wiring.groups:
            return ()
        labels = wiring.group_labels()
        found: dict[int, list[GpuId]] = {}
        for gpu in self.free_gpus(scope):
            found.setdefault(labels[gpu.gpu], []).append(gpu)
        return tuple(tuple(found[label]) for label in sorted(found))
