from pathlib import Path

import pytest

from localcloud.cli import main


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["demo", "--conf", "{"], "not JSON"),
        (["demo", "--conf", "[1]"], "JSON object"),
        (["env"], "make up"),
        (["up"], "make setup"),
    ],
)
def test_a_person_s_mistake_is_one_clear_line_and_exit_code_2(
    arguments: list[str],
    expected: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LOCALCLOUD_TRAINER_PYTHON", raising=False)
    assert main(["--root", str(tmp_path), *arguments]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert "Traceback" not in error


def test_a_root_that_is_no_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--root", str(tmp_path / "nowhere"), "status"]) == 2
    assert "nowhere is not a folder" in capsys.readouterr().err


def test_down_of_nothing_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--root", str(tmp_path), "down"]) == 0
    assert "nothing was running" in capsys.readouterr().out


def test_the_status_of_nothing_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--root", str(tmp_path), "status"]) == 1
    assert "not running" in capsys.readouterr().out
