"""The ledger: one object that holds all pools and leases, swapped by generation."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from trainops import naming
from trainops.config.gpu_pools import GpuPools
from trainops.errors import ConfigError, WriteConflict
from trainops.gcp.storage import Storage
from trainops.steps.gpu_queue.parsing import parse

RACES = 30
"""Swaps that somebody else was faster with, before giving up."""


class Leaving(BaseModel):
    """That the holder was asked to save its state and leave."""

    model_config = ConfigDict(extra="forbid")

    asked_at: datetime = Field(description="Server time at which it was decided.")
    makes_room_for: list[str] = Field(default_factory=list, description="Job keys that wait for its GPUs.")
    why: str = Field(description="One sentence.")


class LeaseEntry(BaseModel):
    """GPUs held by one job key."""

    model_config = ConfigDict(extra="forbid")

    gpus: dict[str, int] = Field(description="GPUs by pool.")
    state: Literal["reserved", "bound"] = Field(description="Reserved until a job exists, then bound to it.")
    admitted_at: datetime = Field(description="Server time of the admission.")
    reserved_until: datetime = Field(description="A reservation that is not bound by then is freed.")
    job_name: str | None = Field(default=None, description="The job it is bound to.")
    record: str = Field(description="URI of the job key's record.")
    probe: bool = Field(default=False, description="Whether its job had not reported its progress when admitted.")
    backfill: bool = Field(default=False, description="Whether it was admitted past a better rank that did not fit.")
    leaving: Leaving | None = Field(default=None, description="Set once it was asked to leave.")


class Ledger(BaseModel):
    """All pools and leases: the one object that admissions swap."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    kind: Literal["trainops.ledger"] = Field(default="trainops.ledger", description="Tells it from other objects.")
    schema_number: Literal[2] = Field(default=2, alias="schema", description="Version of this layout.")
    write_id: str = Field(default="", description="New at every write, so that a writer knows its own.")
    quotas: dict[str, int] = Field(default_factory=dict, description="GPUs by pool, as the last writer has them.")
    policy: dict[str, Any] | None = Field(default=None, description="The queue's policy, as the last writer has it.")
    leases: dict[str, LeaseEntry] = Field(default_factory=dict, description="Leases by job key.")

    @model_validator(mode="before")
    @classmethod
    def _from_schema_1(cls, value: Any) -> Any:
        """Read the layout without policy, whose reasons are made anew at every look."""
        if not isinstance(value, dict) or value.get("schema") != 1:
            return value
        return {key: item for key, item in value.items() if key not in {"reasons", "quotas_hash"}} | {"schema": 2}


class LedgerStore:
    """Reads and swaps the ledger."""

    def __init__(self, storage: Storage, work: str, pools: GpuPools) -> None:
        self._storage = storage
        self._uri = naming.ledger_uri(work)
        self._quotas = pools.quotas()
        self._policy = pools.policy.model_dump()

    def read(self) -> Ledger:
        """The ledger, empty before its first write.

        :raises ConfigError: when deployments that hold leases in it have other quotas or another policy.
        """
        return self._read()[0]

    def swap(self, change: Callable[[Ledger], bool]) -> Ledger:
        """Write what `change` makes of the ledger, unless it answers False; played again when somebody was faster.

        :raises WriteConflict: after many lost races.
        """
        for _ in range(RACES):
            ledger, generation = self._read()
            if not change(ledger):
                return ledger
            ledger.write_id = uuid.uuid4().hex
            try:
                self._storage.write_json(
                    self._uri, ledger.model_dump(mode="json", by_alias=True), generation=generation
                )
            except WriteConflict:
                continue
            return ledger
        raise WriteConflict(f"{self._uri}: lost {RACES} races in a row", status=412)

    def _read(self) -> tuple[Ledger, int]:
        found = self._storage.read_json(self._uri)
        ours: dict[str, Any] = {"quotas": self._quotas, "policy": self._policy}
        if found is None:
            return Ledger(**ours), 0
        ledger = parse(Ledger, self._uri, found.value)
        if ledger.leases:
            self._refuse_others(ledger)
        return ledger.model_copy(update=ours), found.generation

    def _refuse_others(self, ledger: Ledger) -> None:
        for key, theirs, mine in [
            ("pools", ledger.quotas, self._quotas),
            ("policy", ledger.policy or self._policy, self._policy),
        ]:
            if theirs != mine:
                raise ConfigError(
                    f"these {key} differ from those of the deployment that holds leases in the same ledger",
                    source="gpu_pools.yaml", key=key, value=mine, allowed=[str(theirs)],
                    next_step=f"make the files equal, or wait until the leases in {self._uri} have ended",
                )  # fmt: skip
