"""Words that named things of ours and do not come back: the glossary (docs/design.md), or the field, has another one.

Of identifiers and modules alone: a sentence says what it likes, and a test's name is one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

FOLDERS = ("wavestitch", "consumers", "spark_apps", "dags", "plugins", "benchmarks", "tests")
INSTEAD = {
    "upkeep": "maintenance",
    "tending": "maintenance",
    "tended": "maintenance",
    "patience": "deadline or time-out",
    "patiently": "the way it asks again: hedged, in turn, until when",
    "desk": "what it serves",
    "docket": "what it lists",
}
"""By word of an identifier."""
NAMES_INSTEAD = {
    "Site": "the stack",
    "Ground": "what it is made of",
    "_Ear": "what it listens to",
    "_standing": "what they stand for: barring, publishable, kept",
}
"""By whole identifier."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def identifiers(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """With their lines."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.FunctionDef(name=name) if name.startswith("test_"):
                pass
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, line
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name, line
            case ast.alias(name=name) | ast.ImportFrom(module=str(name)):
                yield from ((part, line) for part in name.split("."))


def instead_of(name: str) -> str | None:
    """The word to take; None where the identifier may stay."""
    words = (INSTEAD.get(word.lower()) for word in _WORD.findall(name))
    return NAMES_INSTEAD.get(name) or next(filter(None, words), None)


def wrong_names(path: Path) -> Iterator[str]:
    where = path.relative_to(ROOT)
    text = path.read_text(encoding="utf-8")
    found = [(where.stem, 1)]
    lower = text.lower()
    if any(word in lower for word in INSTEAD) or any(name in text for name in NAMES_INSTEAD):  # few trees are made
        found += identifiers(ast.parse(text))
    for name, line in found:
        if (word := instead_of(name)) is not None:
            yield f"{where}:{line}: {name} - we say {word}"


def test_a_word_that_was_given_up_names_nothing_again() -> None:
    paths = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*.py")]
    assert len(paths) > 1000
    assert [said for path in paths for said in wrong_names(path)] == []


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("class UpkeepRules: ...", True),
        ("def stop(*, patience): ...", True),
        ("stop(patience=3)", True),
        ("_FIRST_PATIENCE = 1", True),
        ("from tests.histories.tending import Maintaining", True),
        ("self._standing = {}", True),
        ("class Site: ...", True),
        ("def test_they_leave_a_desk_standing(): ...", False),
        ("extending, attended = standing, website", False),
        ("'his patience', 'Site'", False),
    ],
)
def test_such_words_are_found_in_identifiers_alone(code: str, wrong: bool) -> None:
    assert any(instead_of(name) for name, _ in identifiers(ast.parse(code))) is wrong
