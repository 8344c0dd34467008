from __future__ import annotations

from pathlib import Path

import pytest

from trainer.errors import StorageError, UserError
from trainer.files import Files, join


@pytest.fixture(params=["local", "gs"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path) if request.param == "local" else join(request.getfixturevalue("bucket"), tmp_path.name)


def test_what_was_written_is_read(folder: str) -> None:
    files = Files()

    assert files.read(join(folder, "a", "b.bin")) is None
    assert files.write(join(folder, "a", "b.bin"), b"\x00one")
    assert files.read(join(folder, "a", "b.bin")) == b"\x00one"


def test_a_write_of_only_new_objects_leaves_one_that_exists(folder: str) -> None:
    files = Files()

    assert files.write_json(join(folder, "m.json"), {"by": 1}, only_new=True)
    assert not files.write_json(join(folder, "m.json"), {"by": 2}, only_new=True)
    assert files.read_json(join(folder, "m.json")) == {"by": 1}


def test_names_are_those_directly_in_the_folder(folder: str) -> None:
    files = Files()
    for name in ("b", "a", "below/c"):
        files.write(join(folder, name), b"")

    assert files.names(folder) == ["a", "b"]
    assert files.names(join(folder, "nothing")) == []


def test_what_is_below_a_folder_is_named_by_its_path_and_deleted_together(folder: str) -> None:
    files = Files()
    for name in ("a/1", "a/b/2", "ab"):
        files.write(join(folder, name), b"")

    assert files.below(folder) == ["a/1", "a/b/2", "ab"]
    files.delete_folder(join(folder, "a"))
    files.delete_folder(join(folder, "nothing"))

    assert files.below(folder) == ["ab"]


def test_deleting_twice_is_fine(folder: str) -> None:
    files = Files()
    files.write(join(folder, "a"), b"1")

    files.delete(join(folder, "a"))
    files.delete(join(folder, "a"))

    assert files.names(folder) == []


def test_a_folder_goes_up_and_comes_down(folder: str, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    (source / "x.txt").write_bytes(b"x")

    Files().upload_folder(source, join(folder, "up"))

    assert Files().download_folder(join(folder, "up"), target) == ["x.txt"]
    assert (target / "x.txt").read_bytes() == b"x"


def test_no_temporary_file_is_left_on_a_disk(tmp_path: Path) -> None:
    Files().write(str(tmp_path / "a"), b"1")
    Files().write(str(tmp_path / "a"), b"2", only_new=True)

    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_bucket_that_does_not_exist_is_never_tried_again(bucket: str) -> None:
    with pytest.raises(StorageError) as caught:
        Files().write("gs://no-such-bucket/a", b"1")

    assert caught.value.exit_code == 2


def test_other_schemes_are_refused() -> None:
    with pytest.raises(UserError, match="allowed: gs://, file:// and local paths"):
        Files().read("s3://bucket/a")


def test_what_is_no_json_is_told_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{")

    with pytest.raises(UserError, match=r"plan\.json: not JSON"):
        Files().read_json(str(tmp_path / "plan.json"))
