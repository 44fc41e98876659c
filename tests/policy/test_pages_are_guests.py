"""The pages are a guest in Airflow's server, whose other plugins have catalogs and settings of their own."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import wavestitch.ui

PAGES = Path(wavestitch.ui.__file__).parent


def test_pages_get_their_deployment_in_the_one_place_that_opens_it_as_a_guest() -> None:
    opened = {
        (path.name, ast.unparse(call))
        for path in PAGES.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("Deployment")
    }
    assert opened == {("guest.py", "Deployment(guest=True)")}


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
