"""Immutable versions of a model: copied inside Google, described, verified, and finished by a manifest written last.

A folder without manifest is no version: nobody reads it, and what a crash left half copied is completed by the next
try.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from trainops import naming
from trainops.config.plan import RunPlan
from trainops.errors import ConfigError, IntegrityError, WriteConflict
from trainops.gcp.storage import ObjectInfo, Storage, crc32c
from trainops.settings import Settings
from trainops.steps.lineage import Lineage
from trainops.steps.model_card import model_card
from trainops.steps.model_folder import list_model
from trainops.steps.outcome import ModelFile, Outcome
from trainops.steps.stored_json import read_model

CARD = "README.md"
MANIFEST = "manifest.json"


class VersionManifest(BaseModel):
    """`manifest.json` of a version; with it the version is complete."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_version: Literal[1] = Field(default=1, alias="schema", description="Version of this layout.")
    model: str = Field(description="Name of the model.")
    version: str = Field(description="Name of the version: run key and generation.")
    experiment: str = Field(description="Experiment that trained it.")
    run_key: str = Field(description="Run that trained it.")
    generation: int = Field(description="Generation of that run.")
    data_date: date = Field(description="Day of its data.")
    eval_loss: float = Field(description="Nats per token over the held-out tokens.")
    unigram_entropy: float = Field(description="Nats per token of the same tokens without context.")
    bytes_per_token: float | None = Field(description="Of the held-out text.")
    heldout: str | None = Field(description="Folder of the tokens whose held-out part it was evaluated on.")
    steps: int = Field(description="Steps trained.")
    tokens: int = Field(description="Tokens trained on.")
    parameters: int = Field(description="Parameters.")
    lineage: Lineage = Field(description="Where it came from.")
    files: tuple[ModelFile, ...] = Field(description="Every other object of the folder, by name.")

    def to_json(self) -> dict[str, Any]:
        """The JSON that is stored."""
        return self.model_dump(mode="json", by_alias=True)


def version_name(plan: RunPlan, generation: int) -> str:
    """Name of the version that a generation of a run becomes."""
    return f"{plan.run_key}-g{generation}"


def folder_of(models: str, model: str, version: str) -> str:
    """Folder of a version by its name.

    :raises ConfigError: it is no such name.
    """
    run_key, _, generation = version.rpartition("-g")
    if not run_key or "/" in run_key or not generation.isdecimal():
        raise ConfigError(
            "a version is named RUN_KEY-gGENERATION",
            key="version",
            value=version,
            next_step="see `trainops models show`",
        )
    return naming.version_folder(models, model, run_key, int(generation))


def read_manifest(storage: Storage, models: str, model: str, version: str) -> VersionManifest | None:
    """Return the manifest of a version, None when there is no such version or it is not complete."""
    found = read_model(storage, f"{folder_of(models, model, version)}/{MANIFEST}", VersionManifest)
    return found[0] if found else None


def list_versions(storage: Storage, models: str, model: str) -> Iterator[VersionManifest]:
    """Yield the complete versions of a model, by name."""
    for info in storage.list(f"{models}/{model}/versions/"):
        if info.uri.endswith(f"/{MANIFEST}"):
            found = read_model(storage, info.uri, VersionManifest)
            if found:
                yield found[0]


def publish(storage: Storage, plan: RunPlan, outcome: Outcome, settings: Settings) -> VersionManifest:
    """Make the version of `outcome` complete, however much of it is there already, and return its manifest.

    :raises IntegrityError: a complete version of this name holds something else, or the model changed since it was
        checked.
    """
    version = version_name(plan, outcome.generation)
    folder = naming.version_folder(settings.models, plan.promotion.model, plan.run_key, outcome.generation)
    card = model_card(plan, outcome, version).encode()
    manifest = _manifest(plan, outcome, version, card)
    if _is_complete(storage, f"{folder}/{MANIFEST}", manifest):
        return manifest
    _copy(storage, outcome, folder)
    _write_card(storage, f"{folder}/{CARD}", card)
    _verify(storage, folder, manifest)
    _write_manifest(storage, f"{folder}/{MANIFEST}", manifest)
    return manifest


def _manifest(plan: RunPlan, outcome: Outcome, version: str, card: bytes) -> VersionManifest:
    described = ModelFile(name=CARD, bytes=len(card), crc32c=crc32c(card))
    files = [item for item in outcome.files if item.name not in {CARD, MANIFEST}]
    return VersionManifest(
        model=plan.promotion.model,
        version=version,
        experiment=plan.experiment,
        run_key=plan.run_key,
        generation=outcome.generation,
        data_date=plan.data_date,
        eval_loss=outcome.result.eval_loss,
        unigram_entropy=outcome.result.unigram_entropy,
        bytes_per_token=outcome.bytes_per_token,
        heldout=outcome.lineage.tokens,
        steps=outcome.result.step,
        tokens=outcome.result.tokens,
        parameters=outcome.result.parameters,
        lineage=outcome.lineage,
        files=tuple(sorted([*files, described], key=lambda item: item.name)),
    )


def _copy(storage: Storage, outcome: Outcome, folder: str) -> None:
    there = list_model(storage, folder)
    for item in outcome.files:
        if item.name in {CARD, MANIFEST} or _same(there.get(item.name), item):
            continue
        # An object of an earlier try that holds something else is replaced: without manifest nothing was promised.
        generation = there[item.name].generation if item.name in there else 0
        try:
            storage.copy(f"{outcome.folder}/{item.name}", f"{folder}/{item.name}", generation=generation)
        except WriteConflict:
            continue  # Somebody else completes the same version; `_verify` judges what they wrote.


def _write_card(storage: Storage, uri: str, card: bytes) -> None:
    stored = storage.read_bytes(uri)
    if stored is not None and stored.data == card:
        return
    generation = stored.generation if stored else 0
    try:
        storage.write_bytes(uri, card, generation=generation, content_type="text/markdown; charset=utf-8")
    except WriteConflict:
        return  # As in `_copy`.


def _verify(storage: Storage, folder: str, manifest: VersionManifest) -> None:
    there = list_model(storage, folder)
    there.pop(MANIFEST, None)
    wrong = [item.name for item in manifest.files if not _same(there.get(item.name), item)]
    if wrong:
        raise IntegrityError(
            f"{folder}: {', '.join(wrong)} differ from what was checked; clear check_outputs, so that it looks again"
        )
    strangers = sorted(set(there) - {item.name for item in manifest.files})
    if strangers:
        raise IntegrityError(f"{folder}: {', '.join(strangers)} do not belong to this version; move them elsewhere")


def _write_manifest(storage: Storage, uri: str, manifest: VersionManifest) -> None:
    try:
        storage.write_json(uri, manifest.to_json(), generation=0)
    except WriteConflict:
        if not _is_complete(storage, uri, manifest):
            raise


def _is_complete(storage: Storage, uri: str, manifest: VersionManifest) -> bool:
    stored = read_model(storage, uri, VersionManifest)
    if stored is not None and stored[0] != manifest:
        raise IntegrityError(f"{uri}: a version of this name is complete and holds something else; it is left alone")
    return stored is not None


def _same(info: ObjectInfo | None, item: ModelFile) -> bool:
    return info is not None and (info.size, info.crc32c) == (item.bytes, item.crc32c)
