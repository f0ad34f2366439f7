"""Groups of alike nodes as their author writes them, and the forms that all parts of a topology document share."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ModelWrapValidatorHandler, PrivateAttr, WithJsonSchema, model_validator

from planner.quantities import BytesPerSecond, MoneyPerHour, currency_of

ScaleUp = Literal["nvswitch", "nvlink-pairs", "nvlink-mesh", "cube-mesh", "xgmi", "ici", "none"]
NicKind = Literal["infiniband", "roce", "efa", "ethernet"]
Billing = Literal["gpu", "node"]

# More nodes than this in one file is a slip of the pen ("h[1-9999999]"), not a cluster.
MOST_NODES = 1_000_000


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Name = Annotated[str, Field(min_length=1, max_length=200)]
Names = Annotated[
    tuple[Name, ...],
    BeforeValidator(_as_tuple),
    WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string", "minLength": 1}}]}),
]
Index = Annotated[int, Field(ge=0, le=1023)]


class TopologyPart(BaseModel):
    """Settings shared by all parts of a topology document: immutable, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class Nics(TopologyPart):
    """Network interfaces of one node: how many, and the speed of one port, one direction [B/s]."""

    count: int = Field(ge=1, le=1024, description="Network interfaces of one node that carry GPU traffic")
    speed: BytesPerSecond = Field(gt=0, description="Speed of one interface in one direction, 400Gb/s for example")
    kind: NicKind | None = Field(default=None, description="Kind of network; the fabric's own when absent")


class NodeSettings(TopologyPart):
    """What is alike in nodes that are alike: GPUs, wiring, interfaces, price."""

    gpu: str = Field(min_length=1, max_length=200, description="GPU type by its catalog name")
    gpus: int = Field(ge=1, le=1024, description="GPUs of one node, taken and failed ones included")
    scale_up: ScaleUp | None = Field(default=None, description="How the GPUs of a node are joined; the GPU type's usual wiring when absent")
    scale_up_link: Name | None = Field(
        default=None, description="Link of the scale-up wiring by catalog name, where it is not the GPU type's own"
    )
    pcie: Name | None = Field(default=None, description="PCIe link by catalog name, where it is not the GPU type's own")
    nics: Nics | None = Field(default=None, description="Network interfaces; without them the nodes are islands")
    price: MoneyPerHour | None = Field(default=None, description="Price of one node per hour")
    gpu_price: MoneyPerHour | None = Field(default=None, description="Price of one GPU per hour")
    billing: Billing = Field(default="gpu", description="Pay for the GPUs used, or for whole nodes once one GPU is used")
    failure_domains: dict[Name, str] = Field(
        default_factory=dict,
        description="What the nodes fail with: rack, row, zone, ... by name; a host list with one name per node where they differ",
    )
    _currencies: dict[str, str] = PrivateAttr(default_factory=dict)

    @model_validator(mode="wrap")
    @classmethod
    def _remember_currencies(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Keep the currency each price was written in, which the number alone has lost."""
        settings = handler(data)
        if not isinstance(data, dict):
            return settings
        named = {key: currency_of(data.get(key)) for key in ("price", "gpu_price")}
        return settings.priced_in({key: currency for key, currency in named.items() if currency is not None})

    @property
    def currencies(self) -> dict[str, str]:
        """Currency of each price that names one, by key."""
        return self._currencies

    def priced_in(self, currencies: dict[str, str]) -> Self:
        """Note the currency of each price that names one, by key."""
        self._currencies = currencies
        return self


class NodeGroup(NodeSettings):
    """Nodes that are alike and hang on the same switches; `name` is one host or a host list such as h100-[01-16].

    A server with cards of two types is written as two nodes, one per type: no group of a replica ever mixes them.
    """

    name: str = Field(min_length=1, max_length=100_000, description="Host name, or a host list such as h100-[01-16]")
    pairs: tuple[tuple[Index, ...], ...] | None = Field(default=None, description="GPUs joined by NVLink bridges: [[0, 1], [2, 3]]")
    nvlinks: tuple[tuple[Index, Index, Annotated[float, Field(gt=0, le=64)]], ...] | None = Field(
        default=None, description="Direct links of an irregular mesh as GPU, GPU, number of links: [[0, 1, 2], [1, 2, 1]]"
    )
    nvlink_domain: Name | None = Field(default=None, description="Name of an NVLink domain that joins several nodes (NVL72 trays)")
    island: Name | None = Field(default=None, description="Network the nodes hang on, where the cluster has several that nothing joins")
    leaf: Names | None = Field(default=None, min_length=1, description="Leaf switch, or a list with one leaf per rail")
    spine: Names | None = Field(default=None, min_length=1, description="Spine switches the leaves hang on")
