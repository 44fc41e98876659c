"""The one command that measures: `python -m benchmarks.side_by_side [--parts …]`.

Starts a broker of its own, runs the parts one after another, and writes the figures to `results/latest.json` and the
tables to `docs/benchmarks.md` after every part. A part that fails says why and takes no other one away; parts that
were not asked for keep their last figures. Exit code 1 where one failed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.children import end_in_order
from benchmarks.figures import headline
from benchmarks.options import Options
from benchmarks.results_file import machine, write_figures
from benchmarks.table import render, replace_between
from benchmarks.test_bed import TestBed, open_test_bed

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_name("results") / "latest.json"
PAGE = ROOT / "docs" / "benchmarks.md"
PARTS = {
    "side-by-side": "benchmarks.parts.contest",
    "reader-memory": "benchmarks.parts.reader_memory",
    "growth": "benchmarks.parts.growth",
    "small-batch": "benchmarks.parts.small_batch",
    "standing-spark": "benchmarks.parts.standing_spark",
    "large-waveform": "benchmarks.parts.large_waveform",
    "grown-table": "benchmarks.parts.grown_table",
    "table-size": "benchmarks.parts.table_size",
    "small-files": "benchmarks.parts.small_files",
    "junk": "benchmarks.parts.junk",
    "rewound-day": "benchmarks.parts.rewound_day",
    "airflow": "benchmarks.parts.airflow_floor",
}
_BEGAN = time.monotonic()


def say(text: str) -> None:
    print(f"{time.monotonic() - _BEGAN:7.1f}  {text}", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    asked = _arguments(argv)
    options = Options(
        mib=asked.mib,
        rounds=asked.rounds,
        sizes=tuple(float(s) for s in asked.sizes.split(",")),
        layouts=tuple(asked.layouts.split(",")),
        extras=not asked.no_extras,
        grown_rows=asked.grown_rows,
        grown_snapshots=asked.grown_snapshots,
        small_files=asked.small_files,
        junk_rows=asked.junk_rows,
        rewound_files=asked.rewound_files,
    )
    end_in_order()
    target = RESULTS if asked.into is None else asked.into
    with (
        tempfile.TemporaryDirectory(prefix="wavestitch-bench-", dir=asked.folder) as folder,
        open_test_bed(Path(folder), say) as bed,
    ):
        failed = [name for name in asked.parts.split(",") if not _measure(name, bed, options, target)]
    if target == RESULTS:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(replace_between(page, render(json.loads(target.read_text()))), encoding="utf-8")
        say(f"tables are in {PAGE.relative_to(ROOT)}, figures in {target.relative_to(ROOT)}")
    if failed:
        say(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.side_by_side", description=__doc__)
    default = Options()
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--mib", type=int, default=default.mib, help="payload of each side-by-side topic")
    parser.add_argument("--rounds", type=int, default=default.rounds)
    parser.add_argument("--sizes", default="1,4", help="GiB, for growth and the reader's memory, e.g. 1,4,16")
    parser.add_argument("--layouts", default=",".join(default.layouts))
    parser.add_argument("--no-extras", action="store_true", help="without uncompressed and cold contenders")
    parser.add_argument("--grown-rows", type=int, default=default.grown_rows)
    parser.add_argument("--grown-snapshots", type=int, default=default.grown_snapshots)
    parser.add_argument("--small-files", type=int, default=default.small_files)
    parser.add_argument("--junk-rows", type=int, default=default.junk_rows)
    parser.add_argument("--rewound-files", type=int, default=default.rewound_files)
    parser.add_argument("--folder", type=Path, help="where the data go; a temporary folder where not given")
    parser.add_argument("--into", type=Path, help="write the figures there and leave the committed ones alone")
    found = parser.parse_args(argv)
    unknown = sorted(set(found.parts.split(",")) - set(PARTS))
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; choose of {', '.join(PARTS)}")
    return found


def _measure(name: str, bed: TestBed, options: Options, target: Path) -> bool:
    """Measure one part and write it down; whether it was measured."""
    say(f"== {name}")
    began = time.monotonic()
    try:
        part: dict[str, Any] = importlib.import_module(PARTS[name]).measure(bed, options, say)
    except Exception as error:  # of one part: the others go on
        traceback.print_exc()
        part = {"failed": f"{type(error).__name__}: {error}"[:800]}
    part["took_s"] = round(time.monotonic() - began, 1)
    part["when"] = datetime.now(UTC).isoformat(timespec="seconds")
    _write(target, name, part, options)
    return "failed" not in part


def _write(target: Path, name: str, part: Mapping[str, Any], options: Options) -> None:
    found = json.loads(target.read_text()) if target.exists() else {}
    parts = {**found.get("parts", {}), name: part}
    whole = {
        **headline(parts),
        "when": part["when"],
        "mib": options.mib if name == "side-by-side" else found.get("mib", options.mib),
        "rounds": options.rounds if name == "side-by-side" else found.get("rounds", options.rounds),
        "machine": machine(),
        "parts": {known: parts[known] for known in PARTS if known in parts},
    }
    write_figures(target, whole)


if __name__ == "__main__":
    raise SystemExit(main())
