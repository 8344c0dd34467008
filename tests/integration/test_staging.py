import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from trainops.config.dataset import Dataset
from trainops.errors import ConfigError, IntegrityError, TrainopsError
from trainops.gcp.storage import Storage, crc32c
from trainops.settings import Settings
from trainops.steps.staging import Staged, groups, parts, stage_dataset

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


def documents_of(storage: Storage, staged: Staged) -> list[dict[str, Any]]:
    """What the trainer reads: the parts that the manifest names, without what it leaves out."""
    documents = []
    for shard in staged.manifest["shards"]:
        blob = storage.read_bytes(part_uri(staged, shard))
        assert blob is not None
        assert (len(blob.data), crc32c(blob.data)) == (shard["bytes"], shard["crc32c"])
        lines = [json.loads(line) for line in blob.data.split(b"\n")[:-1]]
        kept = [line for place, line in enumerate(lines) if place not in shard.get("skip", [])]
        assert len(kept) == shard["documents"]
        documents += kept
    return documents


def part_uri(staged: Staged, shard: dict[str, Any]) -> str:
    name = shard["name"]
    assert name.startswith("../parts/")
    return f"{staged.uri.rpartition('/')[0]}/{name.removeprefix('../')}"


def objects(storage: Storage, settings: Settings) -> dict[str, int]:
    """All that staging left, and its generations."""
    return {item.uri: item.generation for item in storage.list(f"{settings.work}/datasets/")}


def test_documents_become_shards_with_a_manifest(
    storage: Storage, settings: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", 1000)
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
        "schema": 2,
        "dataset": "texts",
        "files": 8,
        "documents": 7,
        "empty": 1,
        "data_date": "2026-11-29",
    }
    assert len(manifest["shards"]) > 2
    sources = storage.read_bytes(f"{staged.uri}/{manifest['sources']}")
    assert sources is not None
    read = [json.loads(line) for line in sources.data.splitlines()]
    assert {one["location"] for one in read} == {str(path) for path in folder.iterdir()}
    assert all(one["crc32c"] == crc32c(Path(one["location"]).read_bytes()) for one in read)
    documents = documents_of(storage, staged)
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
    monkeypatch.setattr(parts, "PART_BYTES", 1000)
    first = stage_dataset(storage, dataset(folder), DAY, settings.work)
    before = objects(storage, settings)
    storage.delete(f"{first.uri}/manifest.json")
    storage.delete(part_uri(first, first.manifest["shards"][1]))
    told: list[str] = []
    again = stage_dataset(storage, dataset(folder), DAY, settings.work, progress=told.append)
    assert (again.moved, again.manifest) == (True, first.manifest)
    assert told[-1] == f"staged, 1 parts moved: {first.uri}"
    storage.delete(part_uri(first, first.manifest["shards"][0]))
    assert stage_dataset(storage, dataset(folder), DAY, settings.work).moved
    assert set(objects(storage, settings)) == set(before)
    assert len(documents_of(storage, first)) == 7


def test_one_file_that_changes_moves_one_part(
    storage: Storage, settings: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "ONE_NAME_IN", 1)
    stage_dataset(storage, dataset(folder), DAY, settings.work)
    before = objects(storage, settings)
    (folder / "3.txt").write_text("changed")
    told: list[str] = []
    staged = stage_dataset(storage, dataset(folder), DAY, settings.work, progress=told.append)
    assert any(line.startswith("reading 1 files") for line in told)
    new = {
        uri.removeprefix(f"{settings.work}/datasets/texts/") for uri in set(objects(storage, settings)) - set(before)
    }
    assert sorted(name.partition("/")[0] for name in new) == sorted([
        "groups", "groups", "parts", staged.sha16, staged.sha16
    ])  # fmt: skip
    assert [document["text"] for document in documents_of(storage, staged)][3] == "changed"


def test_two_runs_that_stage_the_same_at_once_do_no_harm(
    storage: Storage, settings: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", 1000)
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(stage_dataset, storage, dataset(folder), DAY, settings.work) for _ in range(4)]
        staged = [run.result() for run in runs]
    assert len({one.sha16 for one in staged}) == 1
    assert all(len(documents_of(storage, one)) == 7 for one in staged)


def test_a_text_that_comes_twice_is_a_document_once_also_in_other_groups(
    storage: Storage, settings: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "ONE_NAME_IN", 1)
    (folder / "8.jsonl").write_text(f'{{"text": "new"}}\n{{"text": "{(folder / "2.txt").read_text()}"}}\n' * 2)
    staged = stage_dataset(storage, dataset(folder), DAY, settings.work)
    documents = documents_of(storage, staged)
    assert len({document["id"] for document in documents}) == len(documents) == 8
    assert (staged.manifest["documents"], staged.manifest["duplicates"]) == (8, 3)
    kept = stage_dataset(storage, dataset(folder, duplicates="keep"), DAY, settings.work)
    assert len(documents_of(storage, kept)) == 11
    assert (kept.manifest["documents"], kept.manifest["duplicates"]) == (11, 3)


def test_the_limits_of_today_count_also_where_nothing_is_moved(
    storage: Storage, settings: Settings, folder: Path
) -> None:
    (folder / "9.jsonl").write_text("{broken\n")
    allowed = {"on_broken_row": "skip", "max_broken_rows": 1}
    told: list[str] = []
    staged = stage_dataset(storage, dataset(folder, **allowed), DAY, settings.work, progress=told.append)
    assert staged.manifest["broken"] == 1
    assert any("9.jsonl:1" in line for line in told)
    assert not stage_dataset(storage, dataset(folder, **allowed), DAY, settings.work).moved
    with pytest.raises(ConfigError, match=r"1 rows are broken, the first: .*9\.jsonl:1"):
        stage_dataset(storage, dataset(folder), DAY, settings.work)
    with pytest.raises(ConfigError, match="7 documents in 9 files"):
        stage_dataset(storage, dataset(folder, min_documents=8, **allowed), DAY, settings.work)


def test_a_window_of_days_in_a_bucket_moves_the_new_day_alone(
    storage: Storage, settings: Settings, tmp_path: Path
) -> None:
    for day in ("27", "28", "29", "30"):
        text = json.dumps({"text": f"of {day}"}).encode()
        storage.write_bytes(f"{settings.models}/raw/dt=2026-11-{day}/x.jsonl", text, generation=0)
    in_bucket = dataset(f"{settings.models}/raw/dt={{data_date}}", partitions="window", window_days=3)
    first = stage_dataset(storage, in_bucket, DAY, settings.work)
    assert [document["text"] for document in documents_of(storage, first)] == ["of 27", "of 28", "of 29"]
    told: list[str] = []
    second = stage_dataset(storage, in_bucket, date(2026, 11, 30), settings.work, progress=told.append)
    assert any(line.startswith("reading 1 files") for line in told)
    assert [document["text"] for document in documents_of(storage, second)] == ["of 28", "of 29", "of 30"]


def test_somebody_elses_objects_under_our_name_are_left_alone(
    storage: Storage, settings: Settings, folder: Path
) -> None:
    first = stage_dataset(storage, dataset(folder), DAY, settings.work)
    part = part_uri(first, first.manifest["shards"][0])
    storage.write_bytes(part, b"foreign", generation=None)
    with pytest.raises(IntegrityError, match=r"parts/\w+\.jsonl is not the part"):
        stage_dataset(storage, dataset(folder), DAY, settings.work)
    storage.write_json(f"{first.uri}/manifest.json", {"schema": 1}, generation=None)
    with pytest.raises(IntegrityError, match=r"manifest\.json"):
        stage_dataset(storage, dataset(folder), DAY, settings.work)
    blob = storage.read_bytes(part)
    assert blob is not None
    assert blob.data == b"foreign"


def test_files_that_change_while_they_are_staged_leave_no_manifest(
    storage: Storage, settings: Settings, folder: Path
) -> None:
    def change(line: str) -> None:
        if line.startswith("reading 8 files"):
            (folder / "5.txt").write_text("changed between the two readings")

    with pytest.raises(TrainopsError, match="changed while it was staged"):
        stage_dataset(storage, dataset(folder), DAY, settings.work, progress=change)
    assert not [uri for uri in objects(storage, settings) if uri.endswith(("manifest.json", "sources.jsonl"))]
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
