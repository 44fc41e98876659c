"""`wavestitch.open` in somebody else's process: what pyiceberg does for their own tables, and what the process shares,
is as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.domain.maintenance_rig import Rig

NOTEBOOK = """
import copy, decimal, json, locale, logging, os, resource, signal, sys, warnings
from pathlib import Path
import confluent_kafka, numpy, pyarrow, pyarrow.parquet, pydantic, requests, rich, sqlalchemy, strictyaml, xxhash
{first}
sys.path.insert(0, str(Path.cwd()))
here = Path.cwd()

def shared():
    mask = os.umask(0o022)
    os.umask(mask)
    others = [n for n in logging.root.manager.loggerDict if n.split(".")[0] not in ("wavestitch", "kafka", "polars")]
    loggers = [(n, (g := logging.getLogger(n)).level, str(g.handlers), str(g.filters), g.propagate) for n in others]
    return {{
        "loggers": sorted(found for found in loggers if found[1:] != (0, "[]", "[]", True)),
        "root": (logging.root.level, str(logging.root.handlers), str(logging.root.filters)),
        "environment": sorted(os.environ.items()),
        "warnings": [str(f) for f in warnings.filters],
        "signals": [str(signal.getsignal(s)) for s in sorted(signal.valid_signals()) if s not in (9, 19)],
        "decimals": str(decimal.getcontext()),
        "locale": locale.setlocale(locale.LC_ALL),
        "limits": [resource.getrlimit(n) for n in range(resource.RLIMIT_CPU, resource.RLIMIT_AS + 1)],
        "mask": mask,
        "folder": os.getcwd(),
        "hooks": (str(sys.excepthook), str(sys.unraisablehook), sys.getrecursionlimit(), sys.getswitchinterval()),
        "arrow": (pyarrow.cpu_count(), pyarrow.io_thread_count(), pyarrow.default_memory_pool().backend_name),
        "numpy": numpy.geterr(),
    }}

def read_ours():
    import wavestitch
    stream = wavestitch.open("ecg")
    first = next(stream.waveforms())  # a reader that stopped half-way
    return [w.id for w in stream.waveforms()] + [w["waveform_id"] for w in stream.listed()], first, stream

before = shared()
if {ours_first}:
    read_ours()
from pyiceberg.catalog import load_catalog
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import StaticTable
mine = load_catalog("mine")
mine.create_namespace("lab")
own = {{"write.metadata.previous-versions-max": "1000", "write.data.path": f"file://{{here}}/disk"}}
table = mine.create_table("lab.results", schema=pyarrow.schema([("x", pyarrow.int64())]), properties=own)
for n in range(53):
    with table.transaction() as change:
        change.set_properties({{"n": str(n)}})
there = {{str(p) for p in here.rglob("*") if p.is_file()}}
found, first, stream = read_ours()
for some in (table, mine.load_table("lab.results")):
    some.refresh()
    some.append(pyarrow.table({{"x": [1]}}))
table.refresh()
files = table.inspect.files()["file_path"].to_pylist()
plain = mine.create_table("lab.plain", schema=pyarrow.schema([("x", pyarrow.int64())]))
with plain.transaction() as change:
    change.set_properties({{"write.py-location-provider.impl": "places_of_mine.Elsewhere"}})
other = copy.deepcopy(table.metadata)
named = here / "read.metadata.json"
for said in ("one", "two"):
    named.write_text(table.metadata.model_copy(update={{"properties": {{"said": said}}}}).model_dump_json())
    last = FromInputFile.table_metadata(mine._load_file_io().new_input(str(named))).properties["said"]
logged = []
log = logging.getLogger("pyiceberg.io.pyarrow")
log.addHandler(type("Kept", (logging.Handler,), {{"emit": lambda self, record: logged.append(record)}})())
log.warning("PyArrow statistics missing for column %d when writing file", 1)
log.handlers.clear()
after = shared()
print(json.dumps({{
    "ids": found,
    "versions": len(list((here / "mine").rglob("*.metadata.json"))),
    "noted": len(table.metadata.metadata_log),
    "disks": sorted({{os.path.dirname(f) for f in files}}),
    "io": [type(t.io).__module__ for t in (table, mine.load_table("lab.results"), plain)],
    "places": type(mine.load_table("lab.plain").location_provider()).__name__,
    "copied": all(a is not b for a, b in zip(table.metadata.snapshots, other.snapshots)) and bool(other.snapshots),
    "last": last,
    "logged": len(logged),
    "gone": [p for p in there if not os.path.exists(p)],
    "changed": {{k: [[v for v in a if v not in b] for a, b in ((before[k], after[k]), (after[k], before[k]))]
                for k in before if before[k] != after[k]}},
    "ours": type(stream._tables.waveforms().io).__module__,
}}))
"""
IO = """
from pyiceberg.io.pyarrow import PyArrowFileIO
class Mine(PyArrowFileIO): pass
"""
PLACES = """
from pyiceberg.table.locations import SimpleLocationProvider
class Elsewhere(SimpleLocationProvider): pass
"""


@pytest.mark.parametrize(
    ("first", "ours_first"), [("import pyiceberg.catalog.sql", False), ("", True)], ids=["theirs-first", "ours-first"]
)
def test_other_tables_of_the_process_and_what_it_shares_are_as_without_us(
    tmp_path: Path, first: str, ours_first: bool
) -> None:
    rig = Rig(tmp_path / "ours")
    rig.publish("a")
    rig.publish("b")
    found = in_a_notebook(tmp_path, NOTEBOOK.format(first=first, ours_first=ours_first))
    assert found["ids"] == ["a", "b"] * 2
    assert (found["versions"], found["noted"]) == (58, 55), "56 of lab.results, 2 of lab.plain"
    assert found["disks"] == [f"file://{tmp_path}/disk"]
    assert found["io"] == ["io_of_mine"] * 3
    assert found["places"] == "Elsewhere"
    assert (found["copied"], found["last"], found["logged"]) == (True, "two", 1)
    assert found["gone"] == []
    assert found["changed"] == {}
    assert found["ours"] == "wavestitch.tables.access.durable_file_io"


def in_a_notebook(folder: Path, program: str) -> dict[str, Any]:
    """What a child says that works there, with a catalog `mine` by pyiceberg's variables."""
    (folder / "io_of_mine.py").write_text(textwrap.dedent(IO))
    (folder / "places_of_mine.py").write_text(textwrap.dedent(PLACES))
    environment = {
        **os.environ,
        "PYTHONPATH": os.getcwd(),
        "WAVESTITCH_CONFIG": str(folder / "ours" / "wavestitch.toml"),
        "PYICEBERG_CATALOG__MINE__URI": f"sqlite:///{folder}/mine.db",
        "PYICEBERG_CATALOG__MINE__WAREHOUSE": f"file://{folder}/mine",
        "PYICEBERG_CATALOG__MINE__PY_IO_IMPL": "io_of_mine.Mine",
        "PYICEBERG_CATALOG__WAVESTITCH__PY_IO_IMPL": "io_of_mine.Mine",
    }
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said: dict[str, Any] = json.loads(done.stdout)
    return said
