from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainops.steps.globs import covers, matches


@pytest.mark.parametrize(
    ("path", "glob", "expected"),
    [
        ("a.py", "**/*.py", True),
        ("x/y/a.py", "**/*.py", True),
        ("x/y/a.py", "*.py", False),
        ("x/y/a.py", "x/**", True),
        ("x/y/a.py", "x/**/a.py", True),
        ("x/a.py", "x/**/a.py", True),
        ("xy/a.py", "x/**", False),
        ("x/a.pyc", "**/*.py", False),
        ("x/test/a.py", "**/test/**", True),
        ("test/a.py", "**/test/**", True),
        ("latest/a.py", "**/test/**", False),
        ("a1.txt", "a[0-9].txt", True),
        ("a1.txt", "a[!0-9].txt", False),
        ("a[.txt", "a[.txt", True),
        ("A.PY", "*.py", False),
    ],
)
def test_a_glob_matches_as_its_documentation_says(path: str, glob: str, expected: bool) -> None:
    assert matches(path, [glob]) is expected


def test_any_of_several_globs_is_enough_and_none_matches_nothing() -> None:
    assert matches("b.txt", ["a.txt", "b.*"])
    assert not matches("b.txt", [])


@pytest.mark.parametrize(
    ("folder", "glob", "expected"),
    [
        ("x", "x/**", True),
        ("a/x", "x/**", False),
        ("a/x", "**/x/**", True),
        ("x", "x/*", False),
        ("x", "x/**/*.py", False),
        ("x", "*/**", True),
        ("x/y", "x", False),
    ],
)
def test_a_folder_is_covered_when_all_that_it_holds_matches(folder: str, glob: str, expected: bool) -> None:
    assert covers(folder, [glob]) is expected


NAMES = st.sampled_from(["a", "b", "ab"])
GLOBS = st.lists(st.sampled_from(["**", "*", "a", "a*", "?"]), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(st.lists(NAMES, min_size=1, max_size=4), GLOBS)
def test_globs_agree_with_pathlib(names: list[str], glob: list[str]) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        file = root.joinpath(*names)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        # pathlib's last `**` names folders alone; "**/*" says the same of files.
        pattern = "/".join([*glob, "*"] if glob[-1] == "**" else glob)
        found = file in set(root.glob(pattern))
        assert matches("/".join(names), ["/".join(glob)]) is found
        if covers("/".join(names[:-1]), ["/".join(glob)]) and names[1:]:
            assert found
