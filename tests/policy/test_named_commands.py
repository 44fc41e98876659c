"""Every command that a sentence, or a page, names is one that can be typed: it is there, has its stream, takes those
options."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator

import pytest
import typer

from tests.conftest import ROOT
from wavestitch.cli import app

FOLDERS = ("wavestitch", "dags", "plugins", "consumers", "spark_apps")
_COMMAND = re.compile(r"`wavestitch ([a-z-]+(?:\s[^`]*)?)`")
_NAMES_ALL = re.compile(r"STREAM|ecg")
_CAPITALS = re.compile(r"\b[A-Z][A-Z_]+\b")
_VALUE = "\N{OBJECT REPLACEMENT CHARACTER}"
"""In the place of whatever is put into the sentence."""


def said(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(said(v) for v in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else _VALUE


def sentences() -> Iterator[tuple[str, str]]:
    """Where, and what; docstrings aside, whose readers have `--help`."""
    for path in sorted(p for folder in FOLDERS for p in (ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "`wavestitch " not in text:
            continue  # each worker of a run makes these trees before it begins
        tree = ast.parse(text)
        bodies = (
            n.body[0] for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef) if n.body
        )
        docs = {id(first.value) for first in bodies if isinstance(first, ast.Expr)}
        parts = {id(v) for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for v in n.values}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in docs | parts:
                yield f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}", said(node)


def pages() -> Iterator[tuple[str, str]]:
    """The same of the pages that say what to do. What stands there in capitals is somebody's to fill in."""
    for path in sorted((ROOT / "docs").glob("*.md")):
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


IN_PAGES = {
    _CAPITALS.sub(_VALUE, words): where
    for where, text in pages()
    for words in _COMMAND.findall(text)
    if _NAMES_ALL.search(words)  # others are spoken of, and not given
}
COMMANDS = IN_PAGES | {words: where for where, text in sentences() for words in _COMMAND.findall(text)}


def test_there_are_many() -> None:
    assert len(COMMANDS) > 40


@pytest.mark.parametrize("words", COMMANDS, ids=[w.replace(_VALUE, "_") for w in COMMANDS])
def test_a_command_that_a_sentence_names_can_be_typed(words: str) -> None:
    name, *rest = shlex.split(words.replace(_VALUE, "1").replace("…", "x"))
    groups = typer.main.get_command(app)
    command = groups.commands.get(name)  # type: ignore[attr-defined]
    assert command is not None, f"{COMMANDS[words]} names `wavestitch {words}`, and there is no such command"
    if rest == ["1", "1", "--apply"] and name == "maintain":
        return  # the second stands for as many `--let-go FILE` as there are
    try:
        command.make_context(name, rest)
    except Exception as wrong:
        pytest.fail(f"{COMMANDS[words]} names `wavestitch {words}`, which cannot be typed: {wrong}")
