"""What opens the catalog is our settings: no file where somebody stands and no variable of a library's adds to them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

STRANGE = """\
catalog:
  wavestitch:
    s3.retry-strategy-impl: evil.M
    s3.proxy-uri: http://collector.example
    token: SECRET
legacy-current-snapshot-id: true
max-workers: 1
"""
CHILD = """
import sys
{first}
from wavestitch.batch.deployment import Deployment
from wavestitch.tables.catalog import CatalogSettings, open_catalog
from pyiceberg.utils.config import Config
Deployment(None, guest={guest})
found = open_catalog(CatalogSettings("wavestitch", "sqlite:///" + sys.argv[1], "file:///w", {{"s3.endpoint": "https://s"}}))
print(sorted(found.properties), {said})
"""
DAMAGED = "catalog: [this, is, {no: mapping"
OURS = ["py-io-impl", "s3.endpoint", "snapshot-loading-mode", "type", "uri", "warehouse"]


@pytest.mark.parametrize(
    ("first", "where", "text", "guest"),
    [
        ("", ["current"], STRANGE, False),
        ("", ["current"], STRANGE, True),
        ("", ["current", "home", "pyiceberg-home"], DAMAGED, False),
        ("import pyiceberg.catalog", ["home", "pyiceberg-home"], STRANGE, False),
        ("import pyiceberg.catalog", ["home", "pyiceberg-home"], STRANGE, True),
    ],
    ids=["where-somebody-stands", "as-a-guest", "damaged", "somebody-else-was-first", "as-a-guest-of-somebody"],
)
def test_neither_files_nor_variables_of_pyiceberg_s_are_obeyed(
    tmp_path: Path, first: str, where: list[str], text: str, guest: bool
) -> None:
    folders = {name: tmp_path / name for name in ("current", "home", "pyiceberg-home")}
    for name, folder in folders.items():
        folder.mkdir()
        if name in where:
            (folder / ".pyiceberg.yaml").write_text(text)
    environment = {
        **os.environ,
        "PYTHONPATH": os.getcwd(),
        "HOME": str(folders["home"]),
        "PYICEBERG_HOME": str(folders["pyiceberg-home"]),
        "PYICEBERG_CATALOG__WAVESTITCH__AUTH__TYPE": "custom",
        "PYICEBERG_CATALOG__WAVESTITCH__TOKEN": "SECRET",
        "PYICEBERG_MAX_WORKERS": "x",
    }
    program = CHILD.format(first=first, guest=guest, said="" if guest else "dict(Config().config)")
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "catalog.db")],
        cwd=folders["current"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == (f"{OURS} " if guest else f"{OURS} {{}}").strip()
