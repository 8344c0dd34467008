"""The ledger: one object that holds all pools and leases, swapped by generation."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from trainops import naming
from trainops.config.gpu_pools import GpuPools
from trainops.errors import WriteConflict
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

    def leaving(self) -> dict[str, LeaseEntry]:
        """The leases whose holders were asked to leave."""
        return {key: entry for key, entry in self.leases.items() if entry.leaving is not None}

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
        self.uri = naming.ledger_uri(work)
        self._ours: dict[str, Any] = {"quotas": pools.quotas(), "policy": pools.policy.model_dump()}

    def read(self) -> Ledger:
        """The ledger, empty before its first write."""
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
                self._storage.write_json(self.uri, ledger.model_dump(mode="json", by_alias=True), generation=generation)
            except WriteConflict:
                continue
            return ledger
        raise WriteConflict(f"{self.uri}: lost {RACES} races in a row", status=412)

    def difference(self, ledger: Ledger) -> str:
        """What of `gpu_pools.yaml` is not as in the deployment that holds leases; empty when nothing is.

        Who plans with other quotas than another one may hand out GPUs that are not there.
        """
        theirs = {"quotas": ledger.quotas, "policy": ledger.policy or self._ours["policy"]}
        differing = [key for key, mine in self._ours.items() if theirs[key] != mine] if ledger.leases else []
        if not differing:
            return ""
        key = differing[0]
        entries = sorted(set(theirs[key]) | set(self._ours[key]))
        name = next(item for item in entries if theirs[key].get(item) != self._ours[key].get(item))
        mine, other = self._ours[key].get(name), theirs[key].get(name)
        return (
            f"gpu_pools.yaml here says {mine} for {name}, and that of the deployment whose jobs run {other}: nobody is "
            "admitted here until the files are equal; if this one is right, say so with `trainops queue adopt`"
        )

    def adopt(self) -> None:
        """Make the quotas and the policy of this deployment those of the ledger."""

        def adopted(ledger: Ledger) -> bool:
            self.agree(ledger)
            return True

        self.swap(adopted)

    def agree(self, ledger: Ledger) -> None:
        """Write the quotas and the policy of this deployment into a ledger that is about to be written."""
        ledger.quotas, ledger.policy = dict(self._ours["quotas"]), dict(self._ours["policy"])

    def _read(self) -> tuple[Ledger, int]:
        found = self._storage.read_json(self.uri)
        if found is None:
            return Ledger(**self._ours), 0
        return parse(Ledger, self.uri, found.value), found.generation
