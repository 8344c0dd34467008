from __future__ import annotations

import pytest

from trainops.jobspec.reading.shell import COMPUTED, UNSET, read_script


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A=1\nrun $A ${A}", ["run", "1", "1"]),
        ("run ${A:-x} ${A-y}", ["run", "x", "y"]),
        ("A=1; run ${A:-x}", ["run", "1"]),
        ("run ${P:-$(gcloud config get-value project)}", ["run", f"{COMPUTED}$(gcloud config get-value project)"]),
        ("B=b; run ${A:-$B/c}", ["run", "b/c"]),
        ("run $A", ["run", f"{UNSET}$A"]),
        ("run $@", ["run", f"{UNSET}$@"]),
        ("run `date +%s`", ["run", f"{COMPUTED}`date +%s`"]),
        ("export A=1 B=2; readonly C=3; run $A$B$C", ["run", "123"]),
        ("if true; then A=1; else A=1; fi\nrun $A", ["true"]),
        ("for X in one; do run $X; done", ["run", "one"]),
        ("run '$A' \"it's\"", ["run", "$A", "it's"]),
        ("run a \\\n  # no comment after a continued line\n", ["run", "a"]),
    ],
)
def test_a_command_has_the_words_that_a_shell_makes_of_it(text: str, words: list[str]) -> None:
    assert read_script(text).commands[0] == words


def test_a_variable_that_branches_set_differently_is_not_told_until_it_is_set_again() -> None:
    script = read_script("if x; then A=1; else A=2; fi\nrun $A\nA=3\nrun $A")
    assert [words[1] for words in script.commands if words[0] == "run"] == [
        f"{UNSET}$A (branches set it differently)",
        "3",
    ]


def test_a_loop_over_several_values_tells_none_of_them() -> None:
    assert read_script("for X in 1 2; do run $X; done").commands[0] == ["run", f"{UNSET}$X"]


@pytest.mark.parametrize(
    ("text", "name", "body"),
    [
        ("R=r\ncat > c.yaml <<EOF\na: $R\nb: \\$R\nEOF\n", "c.yaml", "a: r\nb: $R\n"),
        ("cat <<'EOF' > c.yaml\na: $R\nEOF\n", "c.yaml", "a: $R\n"),
        ('cat <<"EOF" >./c.yaml\na: $R\nEOF\n', "c.yaml", "a: $R\n"),
        ("cat <<-EOF > c.yaml\n\ta: 1\n\tEOF\n", "c.yaml", "a: 1\n"),
        ("D=/tmp\ntee $D/c.yaml << END\na: 1\nEND\n", "/tmp/c.yaml", "a: 1\n"),
        ("cat > c.yaml <<EOF\na: it's # kept\nEOF", "c.yaml", "a: it's # kept\n"),
        ("cat > c.yaml <<EOF\na: $X\nEOF", "c.yaml", f"a: {UNSET}$X\n"),
    ],
)
def test_a_here_document_is_the_file_that_it_writes(text: str, name: str, body: str) -> None:
    assert read_script(text).file(name) == body


def test_commands_go_on_after_a_here_document_and_the_last_file_of_a_name_counts() -> None:
    script = read_script("cat > c <<E\n1\nE\ncat > ./c <<E\n2\nE\nrun --config c")
    assert script.commands[-1] == ["run", "--config", "c"]
    assert script.file("c") == "2\n"


@pytest.mark.parametrize("text", ["run 'a", 'run "a', "cat > c <<EOF\na: 1\n"])
def test_what_is_not_closed_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"quotation|here-document"):
        read_script(text)
