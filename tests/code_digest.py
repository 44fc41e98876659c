"""What code was run: results that other code gave say nothing of this one."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import grimp

from tests.conftest import ROOT

_OURS = ("wavestitch", "consumers", "spark_apps", "tests")
WORLD = (
    "consumers.batch_scan",
    "consumers.landed_file",
    "consumers.landing",
    "consumers.log_view",
    "consumers.record_probe",
    "consumers.record_sink",
    "consumers.unit_processes",
    "spark_apps.assignment",
    "wavestitch.batch.deployment",
    "wavestitch.batch.deployment_edges",
    "wavestitch.batch.staging",
    "wavestitch.kafka.clients",
    "wavestitch.kafka.raw_log",
    "wavestitch.maintain.actions",
    "wavestitch.maintain.compaction",
    "wavestitch.maintain.landing_folders",
    "wavestitch.maintain.maintenance_run",
    "wavestitch.payload_store",
    "wavestitch.tables.commit.stored_table",
    "wavestitch.tables.lookup.file_scans",
    "wavestitch.tables.maintenance.unnamed_versions",
    "wavestitch.tables.stream_tables",
)
"""Where the product meets brokers, files, catalogs and Spark. What is played in memory imports it and has its own in
place of it, so that nothing here is called, nor what only this imports (`tests/histories/test_world_apart.py`)."""


@cache
def code_digest(*began_with: str, apart: tuple[str, ...] = ()) -> str:
    """Of all our modules that take part where these begin, as they were when it was asked for first: what they import,
    and what that does, but for what only `apart` leads to. Of a package all modules but tests begin. What is said
    beside the code, in comments and docstrings, is no part of it."""
    seal = hashlib.sha256()
    for module in sorted(modules_of(*began_with, apart=apart)):
        for path in (ROOT / f"{module.replace('.', '/')}{end}" for end in (".py", "/__init__.py")):
            if path.exists():
                seal.update(f"{module}\n{spoken(path)}\n".encode())
    return seal.hexdigest()[:16]


def modules_of(*began_with: str, apart: Iterable[str] = ()) -> set[str]:
    """Raises `grimp.exceptions.ModuleNotPresent` for a name that is nobody's."""
    graph = grimp.build_graph(*_OURS, exclude_type_checking_imports=True, cache_dir=None)
    for name in apart:
        graph.find_downstream_modules(name)  # that it is somebody's
        graph.remove_module(name)
    begin = set(began_with).union(*(graph.find_descendants(name) for name in began_with))
    begin = {name for name in begin if not name.rpartition(".")[2].startswith("test_")}
    return begin.union(*(graph.find_upstream_modules(name) for name in begin))


def spoken(path: Path) -> str:
    """The code of a module, however it is written down."""
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_a_remark(one)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_a_remark(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
