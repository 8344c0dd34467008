"""Staging that is killed between any two of its requests loses nothing, and leaves nothing half that looks whole."""

import json
import os
import random
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from trainops.config.dataset import Dataset
from trainops.gcp.storage import Storage
from trainops.settings import Settings
from trainops.steps.staging import stage_dataset

ROOT = Path(__file__).resolve().parents[2]
DAY = date(2026, 11, 29)
CHILD = """
import json, os, signal, sys, threading
from datetime import date
from trainops.config.dataset import Dataset
from trainops.gcp.storage import Storage
from trainops.settings import Settings
from trainops.steps.staging import groups, parts, stage_dataset

settings, dataset, work, last, replied = json.loads(sys.argv[1])
parts.PART_BYTES, groups.ONE_NAME_IN = 2000, 4
storage = Storage.connect(Settings.model_validate(settings))
session, lock, count = storage._client._http, threading.Lock(), 0
send = session.request

def request(*arguments, **options):
    global count
    with lock:
        count += 1
        number = count
    if number == last and not replied:
        os.kill(os.getpid(), signal.SIGKILL)
    reply = send(*arguments, **options)
    if number == last:
        os.kill(os.getpid(), signal.SIGKILL)
    return reply

session.request = request
stage_dataset(storage, Dataset.model_validate(dataset), date(2026, 11, 29), work)
print(count)
"""


@pytest.fixture
def texts(tmp_path: Path) -> Dataset:
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(24):
        (folder / f"{number:02}.txt").write_text(f"text number {number} " * 40)
    (folder / "rows.jsonl").write_text("".join(json.dumps({"text": f"row {n} " * 9}) + "\n" for n in range(200)))
    (folder / "again.jsonl").write_text(json.dumps({"text": "row 7 " * 9}) + "\n")
    return Dataset(name="texts", description="Texts.", path=str(folder), threads=3)


def start(settings: Settings, dataset: Dataset, work: str, last: int, *, replied: bool) -> subprocess.Popen[str]:
    value = [settings.model_dump(by_alias=True, mode="json"), dataset.model_dump(mode="json"), work, last, replied]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "plugins"), str(ROOT / "include")])}
    command = [sys.executable, "-c", CHILD, json.dumps(value)]
    return subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )


def objects(storage: Storage, work: str) -> dict[str, str]:
    return {item.uri.removeprefix(work): item.crc32c for item in storage.list(f"{work}/datasets/")}


def assert_what_looks_whole_is_whole(storage: Storage, work: str, whole: dict[str, str]) -> None:
    """A manifest is there only with all that it names; and every object is one of those of a whole staging."""
    found = objects(storage, work)
    assert found.items() <= whole.items()
    for name in found:
        if name.endswith("/manifest.json"):
            manifest = storage.read_json(f"{work}{name}")
            assert manifest is not None
            for shard in manifest.value["shards"]:
                assert found[f"/datasets/texts/{shard['name'].removeprefix('../')}"] == shard["crc32c"]


def kill_and_stage_again(storage: Storage, settings: Settings, dataset: Dataset, kills: int, seed: int) -> None:
    whole_at = f"{settings.work}/whole"
    done = start(settings, dataset, whole_at, 0, replied=True)
    requests = int(done.communicate(timeout=120)[0].splitlines()[-1])
    whole = objects(storage, whole_at)
    chance = random.Random(seed)
    points = [(chance.randint(1, requests), chance.random() < 0.5) for _ in range(kills)]
    for number in range(0, kills, 3):
        works = {f"{settings.work}/killed-{at}": points[at] for at in range(number, min(number + 3, kills))}
        children = [start(settings, dataset, work, at, replied=replied) for work, (at, replied) in works.items()]
        for child, (work, point) in zip(children, works.items(), strict=True):
            _, told = child.communicate(timeout=120)
            assert child.returncode == -signal.SIGKILL, (point, told)
            assert_what_looks_whole_is_whole(storage, work, whole)
            stage_dataset(storage, dataset, DAY, work)
            assert objects(storage, work) == whole, point


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from trainops.steps.staging import groups, parts

    monkeypatch.setattr(parts, "PART_BYTES", 2000)
    monkeypatch.setattr(groups, "ONE_NAME_IN", 4)


@pytest.mark.usefixtures("small_parts")
def test_a_killed_staging_is_finished_by_the_next(storage: Storage, settings: Settings, texts: Dataset) -> None:
    kill_and_stage_again(storage, settings, texts, kills=6, seed=1)


@pytest.mark.full
@pytest.mark.usefixtures("small_parts")
def test_a_staging_killed_at_a_hundred_points_is_finished_by_the_next(
    storage: Storage, settings: Settings, texts: Dataset
) -> None:
    kill_and_stage_again(storage, settings, texts, kills=100, seed=2)
