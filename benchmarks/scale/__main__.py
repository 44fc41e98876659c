"""Work out what larger rates take, from the committed figures: `python -m benchmarks.scale`, a second or two.

Rewrites the tables of docs/scale.md and its picture. Measures nothing; ends with a sentence where the simulation does
not give back what was measured, and rewrites nothing then.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.results_file import RESULTS
from benchmarks.scale.constants import Measured, read_constants
from benchmarks.scale.page import render, replace_between, work_out
from benchmarks.scale.picture import draw

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "scale.md"
PICTURE = ROOT / "docs" / "images" / "scale.svg"


def read_committed() -> tuple[Any, Any, Any]:
    """What `benchmarks/results` has: the parts of `make bench`, small records, many streams."""
    names = ("latest.json", "small-records.json", "many-streams.json")
    latest, small_records, many_streams = (json.loads((RESULTS / name).read_text()) for name in names)
    return latest, small_records, many_streams


def committed() -> Measured:
    return read_constants(*read_committed())


def main() -> int:
    try:
        found = work_out(committed())
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    PAGE.write_text(replace_between(PAGE.read_text(), render(found)))
    PICTURE.write_bytes(draw(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
