"""Here-documents of a shell text: `cat > FILE <<EOF`, with a quoted word (taken as it is) or `<<-` (tabs taken out)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_OPERATOR = re.compile(r"<<(?P<tabs>-?)[ \t]*(?P<quote>['\"\\]?)(?P<word>[\w.!-]+)['\"]?")


@dataclass(frozen=True)
class HereDocument:
    """A here-document that is announced, and whose lines are to come.

    :param word: the line that ends it.
    :param is_literal: variables in it are no variables.
    :param strips_tabs: tabs that begin a line are left out.
    :param end_of_word: position after the word that announces it.
    """

    word: str
    is_literal: bool
    strips_tabs: bool
    end_of_word: int

    def read(self, text: str, at: int) -> tuple[str, int]:
        """Return the lines from position `at`, and the position after the line that ends them.

        :raises ValueError: no line ends it.
        """
        lines: list[str] = []
        while at < len(text):
            line, _, _ = text[at:].partition("\n")
            at += len(line) + 1
            line = line.lstrip("\t") if self.strips_tabs else line
            if line.rstrip() == self.word:
                return "".join(f"{one}\n" for one in lines), at
            lines.append(line)
        raise ValueError(f"no line {self.word} ends the here-document")


def here_document(text: str, at: int) -> HereDocument | None:
    """Return the here-document that is announced at this position; `<<<` announces none."""
    found = None if text.startswith("<<<", at) else _OPERATOR.match(text, at)
    if found is None:
        return None
    return HereDocument(found["word"], bool(found["quote"]), bool(found["tabs"]), found.end())


def target_of(words: Sequence[str]) -> str:
    """Return the file that a command writes its input to: `tee FILE`."""
    files = [word for word in words[1:] if not word.startswith("-")]
    return files[0] if words[:1] == ["tee"] and files else ""
