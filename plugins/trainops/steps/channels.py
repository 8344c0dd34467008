"""A channel of a model: one small object that points at a version, with everything that it pointed at before.

It only ever changes by a swap against the storage generation that was read, so no change is lost. Anyone can read it:
`gcloud storage cat gs://BUCKET/MODEL/channels/production.json`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from trainops import naming
from trainops.errors import TransientError, WriteConflict
from trainops.gcp.storage import Storage
from trainops.steps.model_versions import VersionManifest, folder_of
from trainops.steps.stored_json import read_model

How = Literal["promoted", "set by hand"]


class Placement(BaseModel):
    """One version at its time in a channel."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: str = Field(description="Version.")
    uri: str = Field(description="Its folder.")
    data_date: date = Field(description="Day of its data.")
    eval_loss: float = Field(description="Nats per token over its held-out tokens.")
    heldout: str | None = Field(description="Folder of those tokens.")
    promoted_at: AwareDatetime = Field(description="When the channel was pointed at it.")
    by: str = Field(description="Run key, or a person.")
    reason: str = Field(description="One sentence.")
    how: How = Field(
        default="promoted", description="By the gate, or by a person who chose it: rollback, promotion by hand."
    )


class Pointer(Placement):
    """The object of a channel."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_version: Literal[1] = Field(default=1, alias="schema", description="Version of this layout.")
    model: str = Field(description="Name of the model.")
    history: tuple[Placement, ...] = Field(default=(), description="What it pointed at before, newest first.")

    def to_json(self) -> dict[str, Any]:
        """The JSON that is stored."""
        return self.model_dump(mode="json", by_alias=True)

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The current placement and all before it, newest first."""
        return (Placement(**{name: getattr(self, name) for name in Placement.model_fields}), *self.history)

    def before_current(self) -> Placement | None:
        """What stood in the channel before the current version came into it first; None when nothing did.

        Looking from its first placement on makes two rollbacks go back two versions, never forward to the one that
        was rolled back.
        """
        placements = self.placements
        first = max(position for position, item in enumerate(placements) if item.version == self.version)
        return placements[first + 1] if first + 1 < len(placements) else None


@dataclass(frozen=True)
class Channel:
    """A channel as it was read: `pointer` is None, and `generation` 0, while nothing has been promoted to it."""

    models: str
    model: str
    name: str
    pointer: Pointer | None
    generation: int

    @property
    def uri(self) -> str:
        """The object that holds the pointer."""
        return naming.channel_uri(self.models, self.model, self.name)

    def had(self, version: str) -> bool:
        """Whether the channel points at `version`, or ever did."""
        return self.pointer is not None and any(item.version == version for item in self.pointer.placements)


def read_channel(storage: Storage, models: str, model: str, name: str) -> Channel:
    """Return what the channel points at.

    :raises IntegrityError: its object is not a pointer.
    """
    found = read_model(storage, naming.channel_uri(models, model, name), Pointer)
    pointer, generation = found or (None, 0)
    return Channel(models, model, name, pointer, generation)


def swap(storage: Storage, channel: Channel, target: VersionManifest, *, by: str, reason: str, how: How) -> Channel:
    """Point the channel, as it was read, at `target`.

    :raises WriteConflict: the channel changed since; read it again and decide again.
    """
    pointer = Pointer(
        model=channel.model,
        version=target.version,
        uri=folder_of(channel.models, channel.model, target.version),
        data_date=target.data_date,
        eval_loss=target.eval_loss,
        heldout=target.heldout,
        promoted_at=datetime.now(UTC),
        by=by,
        reason=reason,
        how=how,
        history=channel.pointer.placements if channel.pointer else (),
    )
    try:
        generation = storage.write_json(channel.uri, pointer.to_json(), generation=channel.generation)
    except TransientError as error:
        if error.status != 429:
            raise
        # Cloud Storage takes about one write a second of an object; being refused for that is a lost race.
        raise WriteConflict(str(error), status=412) from error
    return replace(channel, pointer=pointer, generation=generation)


def list_channels(storage: Storage, models: str, model: str) -> Iterator[tuple[str, Pointer]]:
    """Yield the channels of a model that point at something, by name."""
    prefix = f"{models}/{model}/channels/"
    for info in storage.list(prefix):
        channel = info.uri.removeprefix(prefix).removesuffix(".json")
        pointer = read_channel(storage, models, model, channel).pointer
        if pointer:
            yield channel, pointer
