"""A change of a file changes its own group, whatever the others are."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trainops.config.dataset import Dataset
from trainops.steps.staging.groups import LARGE_FILE, LARGE_GROUP, Group, grouped, key_of
from trainops.steps.staging.source import SourceFile

DATASET = Dataset(name="d", description="D.", path="/d")
FILES = [SourceFile(f"{number:05}.txt", f"/d/{number:05}.txt", 500, f"crc{number}") for number in range(2000)]


def groups_of(files: list[SourceFile]) -> list[Group]:
    return grouped(files, DATASET, "text")


def keys(files: list[SourceFile]) -> set[str]:
    return {group.key for group in groups_of(files)}


def test_small_files_share_a_group_in_their_order() -> None:
    groups = groups_of(FILES)
    assert [file for group in groups for file in group.files] == FILES
    assert 30 < len(groups) < 130


@given(st.integers(0, 1999))
def test_one_file_that_changes_changes_one_group(place: int) -> None:
    other = [*FILES]
    other[place] = replace(other[place], crc32c="other")
    assert len(keys(other) - keys(FILES)) == 1


@given(st.integers(0, 1999))
def test_one_file_that_goes_or_comes_changes_two_groups_at_most(place: int) -> None:
    fewer = FILES[:place] + FILES[place + 1 :]
    assert len(keys(fewer) - keys(FILES)) <= 1
    assert len(keys(FILES) - keys(fewer)) <= 2


def test_a_day_that_is_added_changes_no_group_of_other_days() -> None:
    days = [[replace(file, source=f"{day}/{file.source}", partition=day) for file in FILES[:100]] for day in "abc"]
    assert keys(days[0]) | keys(days[2]) < keys([*days[0], *days[1], *days[2]])


@given(st.lists(st.integers(0, 2 * LARGE_GROUP), max_size=60))
def test_a_large_file_is_a_group_and_a_group_has_a_limit(sizes: list[int]) -> None:
    files = [SourceFile(f"{number}", f"/d/{number}", size, "x") for number, size in enumerate(sizes)]
    groups = groups_of(files)
    assert [file for group in groups for file in group.files] == files
    for group in groups:
        assert len(group.files) == 1 or (
            group.size <= LARGE_GROUP and all(file.size < LARGE_FILE for file in group.files)
        )


def test_where_a_file_lies_does_not_count_and_how_it_is_read_does() -> None:
    moved = [replace(file, location=f"gs://b/{file.source}", generation=1) for file in FILES]
    assert key_of(groups_of(moved)) == key_of(groups_of(FILES))
    changes: dict[str, Any]
    for changes in ({"text_column": "body"}, {"format": "csv"}, {"duplicates": "keep"}, {"max_row_bytes": 10}):
        other = grouped(FILES, DATASET.model_copy(update=changes), "text")
        assert not keys(FILES) & {group.key for group in other}
    for changes in ({"threads": 9}, {"min_documents": 7}, {"on_broken_row": "skip", "max_broken_rows": 1}):
        assert key_of(grouped(FILES, DATASET.model_copy(update=changes), "text")) == key_of(groups_of(FILES))
    assert key_of(grouped(FILES, DATASET, "pairs")) != key_of(groups_of(FILES))
