import hashlib
import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from trainops.config.dataset import Dataset
from trainops.errors import ConfigError, IntegrityError, TrainopsError
from trainops.gcp.storage import Storage
from trainops.settings import Settings
from trainops.steps import staging
from trainops.steps.staging import stage_dataset

DAY = date(2026, 11, 29)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(7):
        (folder / f"{number}.txt").write_text(f"text number {number} " * 20)
    (folder / "empty.txt").touch()
    return folder


def dataset(path: Path | str, **changes: Any) -> Dataset:
    return Dataset.model_validate({"name": "texts", "description": "Texts.", "path": str(path), **changes})


def lines_of(storage: Storage, uri: str) -> list[dict[str, Any]]:
    documents = []
    for item in storage.list(f"{uri}/shard-"):
        blob = storage.read_bytes(item.uri)
        assert blob is not None
        documents += [json.loads(line) for line in blob.data.splitlines()]
    return documents


def test_documents_become_shards_with_a_manifest(
    storage: Storage, settings: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "SHARD_BYTES", 1000)
    told: list[str] = []
    staged = stage_dataset(storage, dataset(folder), DAY, settings.work, progress=told.append)
    assert staged.moved
    assert staged.uri == f"{settings.work}/datasets/texts/{staged.sha16}"
    stored = storage.read_json(f"{staged.uri}/manifest.json")
    assert stored is not None
    assert stored.value == staged.manifest
    manifest = staged.manifest
    totals = {key: manifest[key] for key in ("schema", "dataset", "files", "documents", "empty", "data_date")}
    assert totals == {
        "schema": 1,
        "dataset": "texts",
        "files": 8,
        "documents": 7,
        "empty": 1,
        "data_date": "2026-11-29",
    }
    shards = {item.uri.rpartition("/")[2]: item for item in storage.list(f"{staged.uri}/shard-")}
    assert [shard["name"] for shard in manifest["shards"]] == sorted(shards)
    assert len(shards) > 2
    assert [(shards[s["name"]].size, shards[s["name"]].crc32c) for s in manifest["shards"]] == [
        (shard["bytes"], shard["crc32c"]) for shard in manifest["shards"]
    ]
    documents = lines_of(storage, staged.uri)
    assert [document["source"] for document in documents] == [f"{number}.txt" for number in range(7)]
    assert all(doc["id"] == hashlib.sha256(doc["text"].encode()).hexdigest()[:16] for doc in documents)
    assert any("1 empty" in line for line in told)


def test_the_same_content_is_not_moved_again_also_on_another_date(
    storage: Storage, settings: Settings, folder: Path
) -> None:
    first = stage_dataset(storage, dataset(folder), DAY, settings.work)
    told: list[str] = []
    second = stage_dataset(storage, dataset(folder), date(2026, 11, 30), settings.work, progress=told.append)
    assert (second.uri, second.moved, second.manifest) == (first.uri, False, first.manifest)
    assert told[-1] == f"already staged, nothing moved: {first.uri}"


def test_other_content_has_another_name(storage: Storage, settings: Settings, folder: Path) -> None:
    first = stage_dataset(storage, dataset(folder), DAY, settings.work)
    (folder / "3.txt").write_text("changed")
    second = stage_dataset(storage, dataset(folder), DAY, settings.work)
    assert second.moved
    assert second.sha16 != first.sha16


def test_what_a_crash_or_a_deletion_left_out_is_put_there(
    storage: Storage, settings: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "SHARD_BYTES", 1000)
    first = stage_dataset(storage, dataset(folder), DAY, settings.work)
    storage.delete(f"{first.uri}/manifest.json")
    storage.delete(f"{first.uri}/shard-00001.jsonl")
    told: list[str] = []
    assert stage_dataset(storage, dataset(folder), DAY, settings.work, progress=told.append).moved
    assert [line for line in told if "staged shard" in line] == [
        f"staged shard 2 of {len(first.manifest['shards'])}: {first.uri}/shard-00001.jsonl"
    ]
    storage.delete(f"{first.uri}/shard-00000.jsonl")
    assert stage_dataset(storage, dataset(folder), DAY, settings.work).moved
    assert len(lines_of(storage, first.uri)) == 7


def test_somebody_elses_objects_under_our_name_are_left_alone(
    storage: Storage, settings: Settings, folder: Path
) -> None:
    first = stage_dataset(storage, dataset(folder), DAY, settings.work)
    shard = f"{first.uri}/shard-00000.jsonl"
    storage.write_bytes(shard, b"foreign", generation=None)
    with pytest.raises(IntegrityError, match=r"shard-00000\.jsonl"):
        stage_dataset(storage, dataset(folder), DAY, settings.work)
    storage.write_json(f"{first.uri}/manifest.json", {"schema": 1}, generation=None)
    with pytest.raises(IntegrityError, match=r"manifest\.json"):
        stage_dataset(storage, dataset(folder), DAY, settings.work)
    blob = storage.read_bytes(shard)
    assert blob is not None
    assert blob.data == b"foreign"


def test_files_that_change_while_they_are_staged_leave_no_manifest(
    storage: Storage, settings: Settings, folder: Path
) -> None:
    def change(line: str) -> None:
        if line.startswith("dataset texts"):
            (folder / "5.txt").write_text("changed between the two readings")

    with pytest.raises(TrainopsError, match="changed while they were staged"):
        stage_dataset(storage, dataset(folder), DAY, settings.work, progress=change)
    assert list(storage.list(f"{settings.work}/datasets/")) == []
    assert stage_dataset(storage, dataset(folder), DAY, settings.work).moved


def test_a_dataset_in_a_bucket_is_staged_like_a_folder(storage: Storage, settings: Settings, folder: Path) -> None:
    local = stage_dataset(storage, dataset(folder), DAY, settings.work)
    for path in folder.iterdir():
        storage.upload_file(path, f"{settings.models}/raw/2026-11-29/{path.name}", generation=0)
    in_bucket = dataset(f"{settings.models}/raw/{{data_date}}")
    staged = stage_dataset(storage, in_bucket, DAY, settings.work)
    assert (staged.sha16, staged.moved) == (local.sha16, False)
    with pytest.raises(ConfigError) as caught:
        stage_dataset(storage, in_bucket, date(2026, 11, 20), settings.work)
    assert caught.value.nearest == f"{settings.models}/raw/2026-11-29"
    with pytest.raises(ConfigError, match="does not exist"):
        stage_dataset(storage, dataset("gs://no-such-bucket/x"), DAY, settings.work)


def test_too_few_documents_are_refused_with_what_was_passed_over(
    storage: Storage, settings: Settings, folder: Path
) -> None:
    with pytest.raises(ConfigError, match="7 documents in 8 files; passed over: 1 empty") as caught:
        stage_dataset(storage, dataset(folder, min_documents=8), DAY, settings.work)
    assert caught.value.key == "min_documents"
