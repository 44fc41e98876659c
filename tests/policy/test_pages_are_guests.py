"""The pages are a guest in Airflow's server, whose other plugins have catalogs and settings of their own."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import wavestitch.ui
from wavestitch.contracts import errors

PAGES = Path(wavestitch.ui.__file__).parent


def test_pages_get_their_deployment_in_the_one_place_that_opens_it_as_a_guest() -> None:
    opened = {
        (path.name, ast.unparse(call))
        for path in PAGES.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("Deployment")
    }
    assert opened == {("guest.py", "Deployment(guest=True)")}


_SHOWN = {kind.__name__ for kind in vars(errors).values() if getattr(kind, "FOR_GUESTS", False)}
PLACE = re.compile(r"path|folder|landing|location|uri|directory", re.IGNORECASE)


def names_a_place(call: ast.Call) -> bool:
    """Whether a sentence that guests are shown puts in what is called as a place of the machine is."""
    put_in = [ast.unparse(part.value) for part in ast.walk(call.args[0]) if isinstance(part, ast.FormattedValue)]
    return any(map(PLACE.search, put_in)) and not any(given.arg == "for_guests" for given in call.keywords)


def test_a_sentence_that_guests_are_shown_unless_it_says_otherwise_names_no_place() -> None:
    assert sorted(_SHOWN) == ["DataLost", "Refused"]
    assert names_a_place(ast.parse('Refused(f"row group 1 of {file.path} is odd")').body[0].value)  # type: ignore[attr-defined]
    assert not names_a_place(ast.parse('Refused(f"of {path}", for_guests=False)').body[0].value)  # type: ignore[attr-defined]
    named = [
        f"{path.relative_to(PAGES.parent)}:{call.lineno}"
        for path in PAGES.parent.rglob("*.py")
        if not path.name.startswith("cli")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and ast.unparse(call.func) in _SHOWN and call.args and names_a_place(call)
    ]
    assert named == [], "say for_guests=False, or leave the place out"


THEIRS = """
import wavestitch.ui.guest
from pyiceberg.catalog import load_catalog
print(type(load_catalog("theirs")).__name__)
"""


def test_catalogs_of_others_have_their_settings_before_anybody_has_looked_at_a_page() -> None:
    named = {"PYICEBERG_CATALOG__THEIRS__URI": "sqlite:///:memory:", "PYICEBERG_CATALOG__THEIRS__TYPE": "sql"}
    done = subprocess.run(
        [sys.executable, "-c", THEIRS], env={**os.environ, **named}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "SqlCatalog"
