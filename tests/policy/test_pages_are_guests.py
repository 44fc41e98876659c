"""The pages are a guest in Airflow's server, whose other plugins have catalogs and settings of their own."""

from __future__ import annotations

import ast
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
