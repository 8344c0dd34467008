"""A run reads its day, a window of days, or all days so far."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from trainops.config.dataset import Dataset
from trainops.errors import ConfigError
from trainops.steps.staging.find import Found, find

DAYS = ("2026-11-26", "2026-11-28", "2026-11-29", "2026-11-30")


def folder_of(tmp_path: Path) -> Path:
    for day in DAYS:
        (tmp_path / f"dt={day}" / "raw").mkdir(parents=True)
        (tmp_path / f"dt={day}" / "raw" / "x.txt").write_text(day)
    (tmp_path / "dt=2026-11-31" / "raw").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    return tmp_path


def found(folder: Path, day: str, **changes: Any) -> Found:
    value = {"name": "d", "description": "D.", "path": f"{folder}/dt={{data_date}}/raw", **changes}
    return find(Dataset.model_validate(value), date.fromisoformat(day))


def names(result: Found) -> list[str]:
    return [file.source for file in result.files]


def test_a_day_is_read_under_the_names_in_its_folder(tmp_path: Path) -> None:
    assert names(found(folder_of(tmp_path), "2026-11-29")) == ["x.txt"]


def test_a_window_ends_with_the_data_date_and_tells_days_that_are_not_there(tmp_path: Path) -> None:
    result = found(folder_of(tmp_path), "2026-11-29", partitions="window", window_days=3)
    assert names(result) == ["dt=2026-11-28/raw/x.txt", "dt=2026-11-29/raw/x.txt"]
    assert result.missing == [date(2026, 11, 27)]


def test_all_days_are_those_up_to_the_data_date(tmp_path: Path) -> None:
    result = found(folder_of(tmp_path), "2026-11-29", partitions="all")
    assert names(result) == [f"dt={day}/raw/x.txt" for day in DAYS[:3]]
    assert result.missing == []


@pytest.mark.parametrize("changes", [{"partitions": "window", "window_days": 7}, {"partitions": "all"}, {}])
def test_the_day_of_the_run_must_be_there(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        found(folder_of(tmp_path), "2026-11-27", **changes)


def test_a_day_may_be_a_file(tmp_path: Path) -> None:
    for day in DAYS:
        (tmp_path / f"{day}.jsonl").write_text('{"text": "x"}\n')
    path = f"{tmp_path}/{{data_date}}.jsonl"
    assert names(found(tmp_path, "2026-11-28", path=path, partitions="all")) == [
        "2026-11-26.jsonl", "2026-11-28.jsonl"
    ]  # fmt: skip


def test_another_kind_of_place_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no kind of source") as caught:
        found(tmp_path, "2026-11-28", path="s3://bucket/x")
    assert caught.value.value == "s3://bucket/x"
