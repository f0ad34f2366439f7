"""What all parts of a problem document share: immutable, unknown keys refused, keys checked against each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from planner.problem.fault import Fault

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", max_length=100)]
Flag = Annotated[bool, Field(strict=True)]
Entry = Annotated[str, Field(min_length=1, max_length=10_000)]
Kind = Annotated[str, Field(min_length=1, max_length=200)]


class ProblemPart(BaseModel):
    """Settings shared by all parts of a problem: immutable, unknown keys refused, keys checked against each other."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    @classmethod
    def faults(cls, given: Mapping[str, Any]) -> Iterator[Fault]:
        """What is wrong between the keys of this part; none by default."""
        del given
        return iter(())

    @model_validator(mode="after")
    def _keys_agree(self) -> Self:
        for fault in self.faults(dict(self)):
            raise PydanticCustomError("planner_fault", "{message}; {hint}", {"message": fault.message, "hint": fault.hint})
        return self
