from pathlib import Path

import pytest

from trainops.errors import ConfigError
from trainops.steps.packaging import check_trainer

PYPROJECT = """
[build-system]
requires = ["flit_core"]
build-backend = "flit_core.buildapi"

[project]
name = "trainer"
version = "1.2.3"
description = "A tiny trainer"
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    package = tmp_path / "src" / "trainer"
    package.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (package / "__init__.py").write_text('"""A tiny trainer."""\n')
    (package / "task.py").write_text("print('training')\n")
    return tmp_path


def test_a_trainer_that_builds_is_accepted_and_left_as_it_was(source: Path) -> None:
    before = sorted(source.rglob("*"))
    check_trainer(source)
    assert sorted(source.rglob("*")) == before


def test_a_syntax_error_is_told_with_file_and_line(source: Path) -> None:
    broken = source / "src" / "trainer" / "task.py"
    broken.write_text("x = 1\ndef f(:\n")
    with pytest.raises(ConfigError, match=r"not Python: .*def f\(:") as caught:
        check_trainer(source)
    assert caught.value.source == f"{broken}:2"


def test_a_null_byte_is_told_with_its_file(source: Path) -> None:
    broken = source / "src" / "trainer" / "task.py"
    broken.write_bytes(b"x = 1\x00\n")
    with pytest.raises(ConfigError, match="not Python") as caught:
        check_trainer(source)
    assert caught.value.source == f"{broken}:1"


def test_a_missing_folder_or_pyproject_is_told(source: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        check_trainer(source / "none")
    (source / "pyproject.toml").unlink()
    with pytest.raises(ConfigError, match=r"no pyproject\.toml"):
        check_trainer(source)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("[project]", "[project", "cannot be read"),
        ("flit_core.buildapi", "flit_core.buildap", "did you mean 'flit_core.buildapi'"),
        ('name = "trainer"', 'name = "other"', "does not build: .*other"),
        ('version = "1.2.3"', 'version = "one"', "does not build: .*one"),
        ('description = "A tiny trainer"', 'readme = "none.md"', r"does not build: .*none\.md"),
    ],
)
def test_a_pyproject_that_does_not_build_is_told(source: Path, old: str, new: str, problem: str) -> None:
    file = source / "pyproject.toml"
    file.write_text(PYPROJECT.replace(old, new))
    with pytest.raises(ConfigError, match=problem) as caught:
        check_trainer(source)
    assert caught.value.source == str(file)
    assert "/tmp/trainops-" not in str(caught.value)
