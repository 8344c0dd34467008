import gzip
import json
import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from trainops.config.dataset import Dataset
from trainops.errors import ConfigError
from trainops.steps.staging import SourceFile, find_files, form_of
from trainops.steps.staging.documents import Counts, Form, SourceDocument, read_documents
from trainops.steps.staging.local_folder import LocalFolder
from trainops.steps.staging.rows import read_rows

DAY = date(2026, 11, 29)


def dataset(path: Path | str, **changes: Any) -> Dataset:
    return Dataset.model_validate({"name": "texts", "description": "Texts.", "path": str(path), **changes})


def documents_of(found: Dataset, counts: Counts, form: Form = "text") -> list[SourceDocument]:
    source = LocalFolder()
    files = [source.fingerprinted(file) for file in find_files(found, DAY)]
    rows = (row for file in files for row in read_rows(found, source, file))
    return list(read_documents(found, form, rows, counts))


def read(folder: Path, **changes: Any) -> tuple[list[tuple[str, str]], Counts]:
    counts = Counts()
    documents = documents_of(dataset(folder, **changes), counts)
    return [(document.source, document.text) for document in documents], counts


def test_files_are_found_in_all_folders_in_the_order_of_their_paths(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.txt", "a/b/c.txt", "a.md", "skip/x.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    found = find_files(dataset(tmp_path, include=["**/*.txt"], exclude=["skip/**"]), DAY)
    assert [file.source for file in found] == ["a/b/c.txt", "a/z.txt", "b.txt"]
    assert found[2] == SourceFile("b.txt", str(tmp_path / "b.txt"), size=5)


def test_the_data_date_stands_in_the_path(tmp_path: Path) -> None:
    (tmp_path / "2026-11-29").mkdir()
    (tmp_path / "2026-11-29" / "x.txt").write_text("x")
    assert len(find_files(dataset(f"{tmp_path}/{{data_date}}"), DAY)) == 1
    with pytest.raises(ConfigError, match=r"does not exist.*did you mean '.*2026-11-29'"):
        find_files(dataset(f"{tmp_path}/{{data_date}}"), date(2026, 11, 28))


def test_a_path_may_be_a_single_file(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("x")
    assert [file.source for file in find_files(dataset(tmp_path / "x.txt"), DAY)] == ["x.txt"]


def test_a_missing_folder_names_its_nearest_sibling(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    with pytest.raises(ConfigError) as caught:
        find_files(dataset(tmp_path / "corpsu"), DAY)
    assert caught.value.source.endswith("datasets/texts.yaml")
    assert caught.value.key == "path"
    assert caught.value.nearest == str(tmp_path / "corpus")


def test_globs_that_match_nothing_are_told(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("x")
    with pytest.raises(ConfigError, match=r"no file under .* matches.*\*\*/\*\.py") as caught:
        find_files(dataset(tmp_path, include=["**/*.py"]), DAY)
    assert caught.value.key == "include"


def test_what_cannot_be_read_is_told_unless_it_is_excluded(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("x")
    (tmp_path / "broken.txt").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        find_files(dataset(tmp_path), DAY)
    assert caught.value.source == str(tmp_path / "broken.txt")
    assert len(find_files(dataset(tmp_path, exclude=["broken.*"]), DAY)) == 1
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(ConfigError, match="no regular file"):
        find_files(dataset(tmp_path, exclude=["broken.*"]), DAY)


def test_files_that_are_all_empty_are_told(tmp_path: Path) -> None:
    (tmp_path / "x.txt").touch()
    (tmp_path / "y.txt").touch()
    with pytest.raises(ConfigError, match="all 2 files that match are empty"):
        find_files(dataset(tmp_path), DAY)


def test_text_and_jsonl_and_their_gzip_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\r\ntwo\n", newline="")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"packed"))
    (tmp_path / "c.jsonl").write_text('{"text": "first", "other": 1}\n\n{"text": "third"}\n')
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress('{"text": "zw\u00f6lf"}'.encode()))
    documents, counts = read(tmp_path)
    assert documents == [
        ("a.txt", "one\r\ntwo\n"),
        ("b.txt.gz", "packed"),
        ("c.jsonl:1", "first"),
        ("c.jsonl:3", "third"),
        ("d.jsonl.gz:1", "zw\u00f6lf"),
    ]
    assert counts.rows == 5


def test_what_is_no_document_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("same")
    (tmp_path / "b.txt").write_text("same")
    (tmp_path / "c.txt").write_text(" \n")
    (tmp_path / "d.txt").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "e.jsonl").write_bytes(b'{"text": ""}\n{"text": "\xe9\xe9"}\n{"text": "\\ud800"}\n{"text": "same"}\n')
    documents, counts = read(tmp_path)
    assert documents == [("a.txt", "same"), ("b.txt", "same"), ("e.jsonl:4", "same")]
    assert (counts.rows, counts.empty, counts.bad_utf8, counts.broken) == (8, 2, 3, 0)
    assert counts.places == ["d.txt: not UTF-8", "e.jsonl:2: not UTF-8", "e.jsonl:3: not UTF-8"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{broken", "a line is not JSON"),
        ("[1]", "an object with the key `text`"),
        ('{"texts": "x"}', "an object with the key `text`"),
        ('{"text": 5}', "got 5"),
    ],
)
def test_a_bad_line_is_told_with_its_file_and_number(tmp_path: Path, line: str, problem: str) -> None:
    (tmp_path / "x.jsonl").write_text(f'{{"text": "fine"}}\n{line}\n')
    with pytest.raises(ConfigError, match=problem) as caught:
        read(tmp_path)
    assert caught.value.source == "x.jsonl:2"


@pytest.mark.parametrize("data", [b"plain", gzip.compress(b"text" * 1000, mtime=0)[:-10]], ids=["text", "cut short"])
def test_what_is_no_whole_gzip_is_told(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.txt.gz").write_bytes(data)
    with pytest.raises(ConfigError, match="gzip"):
        read(tmp_path)


def test_a_documents_id_is_the_hash_of_its_text_alone(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("text")
    (document,) = documents_of(dataset(tmp_path), Counts())
    assert document.id == "982d9e3eb996f559"


def read_pairs(folder: Path, **changes: Any) -> list[tuple[str, str]]:
    found = dataset(folder, **changes)
    form = form_of(found, find_files(found, DAY), "pairs")
    return [(document.source, document.text) for document in documents_of(found, Counts(), form)]


def test_a_line_of_pairs_is_a_document_of_one_pair(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"response": "ja\u00e4", "prompt": "?", "by": "ann"}\n\n{"prompt": "", "response": "b"}\n'
    )
    assert read_pairs(tmp_path) == [
        ("a.jsonl:1", '{"prompt": "?", "response": "ja\u00e4"}'),
        ("a.jsonl:3", '{"prompt": "", "response": "b"}'),
    ]


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ('{"prompt": "a"}', "response", None),
        ('{"prompt": "a", "response": ""}', "response", ""),
        ('{"prompt": 1, "response": "b"}', "prompt", 1),
        ('{"text": "a"}', "prompt", None),
        ("[1]", "prompt", [1]),
    ],
)
def test_a_line_that_is_no_pair_is_told_before_a_job_reads_it(tmp_path: Path, line: str, key: str, value: Any) -> None:
    (tmp_path / "x.jsonl").write_text(f'{{"prompt": "a", "response": "b"}}\n{line}\n')
    with pytest.raises(ConfigError, match="every line of pairs") as caught:
        read_pairs(tmp_path)
    assert (caught.value.source, caught.value.key, caught.value.value) == ("x.jsonl:2", key, value)


def test_pairs_lie_in_files_of_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text('{"prompt": "a", "response": "b"}')
    with pytest.raises(ConfigError, match=r"end in \.jsonl") as caught:
        read_pairs(tmp_path)
    assert (caught.value.key, caught.value.value) == ("include", "a.txt")


def test_pairs_in_a_run_that_reads_text_are_told_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"prompt": "a", "response": "b"}\n')
    with pytest.raises(ConfigError, match=r"tokenizer: \{documents: pairs\}"):
        read(tmp_path)


def test_functions_with_docstrings_make_the_document_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('def f(x):\n    """Double it."""\n    return 2 * x\n')
    (tmp_path / "b.py").write_text("x = 1\n")
    text = json.dumps({"prompt": 'def f(x):\n    return 2 * x\n    """', "response": "Double it."})
    assert read_pairs(tmp_path, pairs_from="docstrings") == [("a.py", text)]
    with pytest.raises(ConfigError, match=r"tokenizer: \{documents: pairs\}") as caught:
        form_of(dataset(tmp_path, pairs_from="docstrings"), [], None)
    assert (caught.value.key, caught.value.value) == ("pairs_from", "docstrings")


def test_broken_rows_are_passed_over_up_to_the_limit_and_told_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"text": "a"}\n{broken\n{"texts": "b"}\n' + '{"text": "%s"}\n' % ("c" * 90))
    limits: dict[str, Any] = {"on_broken_row": "skip", "max_row_bytes": 80}
    documents, counts = read(tmp_path, max_broken_rows=3, **limits)
    assert documents == [("x.jsonl:1", "a")]
    assert (counts.rows, counts.broken) == (4, 3)
    assert [place.partition(": ")[0].rpartition("/")[2] for place in counts.places] == [
        "x.jsonl:2", "x.jsonl:3", "x.jsonl:4"
    ]  # fmt: skip
    assert "max_row_bytes: 80 bytes" in counts.places[2]
    with pytest.raises(ConfigError, match=r"3 rows are broken, the first: .*x\.jsonl:2") as caught:
        read(tmp_path, max_broken_rows=2, **limits)
    assert (caught.value.key, caught.value.value) == ("max_broken_rows", 2)
    with pytest.raises(ConfigError, match="not JSON"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("name", "line", "broken"),
    [
        ("x.jsonl", '{"text": "a", "score": 1, "good": true}', None),
        ("x.jsonl", '{"text": "a", "score": true, "good": true}', "score"),
        ("x.jsonl", '{"text": "a", "score": "1", "good": true}', "score"),
        ("x.jsonl", '{"text": "a", "score": 0.5}', "good"),
        ("x.jsonl", '{"text": "a", "score": 0.5, "good": 1}', "good"),
        ("x.csv", "text,score,good\na,0.5,true", None),
        ("x.csv", "text,score,good\na,much,true", "score"),
        ("x.csv", "text,score,good\na,1,yes", "good"),
        ("x.csv", "text,score\na,1", "good"),
    ],
)
def test_a_demanded_column_is_there_and_of_its_type(tmp_path: Path, name: str, line: str, broken: str | None) -> None:
    (tmp_path / name).write_text(line)
    columns = {"score": "number", "good": "boolean"}
    if broken is None:
        assert [text for _, text in read(tmp_path, columns=columns)[0]] == ["a"]
        return
    with pytest.raises(ConfigError, match="must be a") as caught:
        read(tmp_path, columns=columns)
    assert caught.value.key == broken


def test_columns_have_the_names_that_the_dataset_says(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"body": "b", "question": "q", "answer": "a"}\n')
    assert read(tmp_path, text_column="body")[0] == [("x.jsonl:1", "b")]
    assert read_pairs(tmp_path, prompt_column="question", response_column="answer") == [
        ("x.jsonl:1", '{"prompt": "q", "response": "a"}')
    ]
    with pytest.raises(ConfigError, match="allowed: body, question, answer") as caught:
        read(tmp_path, text_column="bodi")
    assert (caught.value.source, caught.value.nearest) == ("x.jsonl:1", "body")
