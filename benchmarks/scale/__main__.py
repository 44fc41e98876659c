"""Work out what larger rates take, from the newest figures: `python -m benchmarks.scale`, a second or two.

Rewrites the tables of docs/scale.md, its picture, and `results/scale.json`, which keeps the figures that they are of.
Measures nothing; ends with a sentence where the simulation does not give back what was measured, and rewrites nothing
then: the page stays that of the last figures that it explains.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.results_file import RESULTS, write_figures
from benchmarks.scale.constants import Measured, read_constants
from benchmarks.scale.page import render, replace_between, work_out
from benchmarks.scale.picture import draw

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "scale.md"
PICTURE = ROOT / "docs" / "images" / "scale.svg"


KEPT = RESULTS / "scale.json"
_PARTS = ("growth", "small-batch", "grown-table", "airflow", "table-size")


def read_newest() -> tuple[Any, Any, Any]:
    """What `benchmarks/results` has: the parts of `make bench` that are used here, small records, many streams."""
    names = ("latest.json", "small-records.json", "many-streams.json")
    latest, small_records, many_streams = (json.loads((RESULTS / name).read_text()) for name in names)
    return {"parts": {name: latest["parts"][name] for name in _PARTS}}, small_records, many_streams


def read_runs() -> Any:
    """Of many streams in one Airflow. Nothing is worked out of them: they are shown as they are."""
    return json.loads((RESULTS / "many-runs.json").read_text())


def read_committed() -> tuple[Any, Any, Any, Any]:
    """The figures that the page is of."""
    kept = json.loads(KEPT.read_text())
    return kept["latest"], kept["small records"], kept["many streams"], read_runs()


def committed() -> Measured:
    return read_constants(*read_committed())


def main() -> int:
    try:
        newest = read_newest()
        found = work_out(read_constants(*newest, read_runs()))
    except (KeyError, ValueError) as error:
        said = f"benchmarks/results has no {error}; `make bench` measures it" if isinstance(error, KeyError) else error
        print(f"{said}; docs/scale.md stays what it was", file=sys.stderr)
        return 1
    write_figures(KEPT, dict(zip(("latest", "small records", "many streams"), newest, strict=True)))
    PAGE.write_text(replace_between(PAGE.read_text(), render(found)))
    PICTURE.write_bytes(draw(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
