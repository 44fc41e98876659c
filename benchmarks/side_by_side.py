"""The one command that measures: `python -m benchmarks.side_by_side [--parts …]`.

Starts a broker of its own, runs the parts one after another, and after every part writes the figures to
`results/latest.json`, tables and chart to `docs/benchmarks.md`. A part that fails says why and takes no other one away;
parts that were not asked for keep their last figures, and so does one that fails where it has some. Exit code 1 where
one failed.
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
from benchmarks.headline import headline
from benchmarks.options import Options
from benchmarks.page import CHART, FIGURES, PAGE, ROOT, write_page
from benchmarks.results_file import machine, write_figures
from benchmarks.test_bed import TestBed, open_test_bed

PARTS = {
    "side-by-side": "benchmarks.parts.contest",
    "reader-memory": "benchmarks.parts.reader_memory",
    "growth": "benchmarks.parts.growth",
    "small-batch": "benchmarks.parts.small_batch",
    "standing-spark": "benchmarks.parts.standing_spark",
    "freshness": "benchmarks.parts.freshness",
    "large-waveform": "benchmarks.parts.large_waveform",
    "grown-table": "benchmarks.parts.grown_table",
    "table-size": "benchmarks.parts.table_size",
    "small-files": "benchmarks.parts.small_files",
    "junk": "benchmarks.parts.junk",
    "rewound-day": "benchmarks.parts.rewound_day",
    "airflow": "benchmarks.parts.airflow_floor",
    "ten-million": "benchmarks.parts.ten_million",
}
LONG = ("large-waveform", "small-files", "junk", "rewound-day", "ten-million")
"""What is rare, or grows over years, and takes minutes to make: measured where it is asked for."""
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
        minutes=asked.minutes,
        many_chunks=asked.many_chunks,
        odd_chunks=asked.odd_chunks,
        grown_batches=asked.grown_batches,
    )
    end_in_order()
    target = FIGURES if asked.into is None else asked.into
    with (
        tempfile.TemporaryDirectory(prefix="wavestitch-bench-", dir=asked.folder) as folder,
        open_test_bed(Path(folder), say) as bed,
    ):
        failed = [name for name in _parts(asked.parts) if not _measure(name, bed, options, target)]
    if target == FIGURES:
        say(f"tables are in {PAGE.relative_to(ROOT)}, with {CHART.name}, figures in {target.relative_to(ROOT)}")
    if failed:
        say(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.side_by_side", description=__doc__)
    default = Options()
    usual = ",".join(name for name in PARTS if name not in LONG)
    parser.add_argument("--parts", default=usual, help=f"all, or of {', '.join(PARTS)}; without {', '.join(LONG)}")
    parser.add_argument("--mib", type=int, default=default.mib, help="payload of each side-by-side topic")
    parser.add_argument("--rounds", type=int, default=default.rounds)
    parser.add_argument("--sizes", default="1,4", help="GiB, for growth and the reader's memory, e.g. 1,4,16")
    parser.add_argument("--layouts", default=",".join(default.layouts))
    parser.add_argument("--no-extras", action="store_true", help="without what only completes the picture")
    parser.add_argument("--grown-rows", type=int, default=default.grown_rows)
    parser.add_argument("--grown-snapshots", type=int, default=default.grown_snapshots)
    parser.add_argument("--grown-batches", type=int, default=default.grown_batches)
    parser.add_argument("--minutes", type=float, default=default.minutes, help="of freshness; the whole of it is 60")
    parser.add_argument("--many-chunks", type=int, default=default.many_chunks)
    parser.add_argument("--odd-chunks", type=int, default=default.odd_chunks)
    parser.add_argument("--small-files", type=int, default=default.small_files)
    parser.add_argument("--junk-rows", type=int, default=default.junk_rows)
    parser.add_argument("--rewound-files", type=int, default=default.rewound_files)
    parser.add_argument("--folder", type=Path, help="where the data go; a temporary folder where not given")
    parser.add_argument("--into", type=Path, help="write the figures there and leave the committed ones alone")
    found = parser.parse_args(argv)
    unknown = sorted(set(_parts(found.parts)) - set(PARTS))
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; choose of {', '.join(PARTS)}")
    return found


def _parts(asked: str) -> list[str]:
    return list(PARTS) if asked == "all" else asked.split(",")


def _measure(name: str, bed: TestBed, options: Options, target: Path) -> bool:
    """Measure one part and write it down, a long one whenever it has something; whether it was measured."""
    say(f"== {name}")
    began = time.monotonic()
    try:
        told = importlib.import_module(PARTS[name]).measure(bed, options, say)
        for part in [told] if isinstance(told, dict) else told:
            _write(target, name, _stamped(part, began), options)
    except Exception as error:  # of one part: the others go on
        traceback.print_exc()
        _write(target, name, _stamped({"failed": f"{type(error).__name__}: {error}"[:800]}, began), options)
        say(f"{name}: failed after {time.monotonic() - began:.0f} s")
        return False
    say(f"{name}: measured in {time.monotonic() - began:.0f} s")
    return True


def _stamped(part: Mapping[str, Any], began: float) -> dict[str, Any]:
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return {**part, "took_s": round(time.monotonic() - began, 1), "when": when}


def _write(target: Path, name: str, part: Mapping[str, Any], options: Options) -> None:
    found = json.loads(target.read_text()) if target.exists() else {}
    before = found.get("parts", {}).get(name, {})
    if "failed" in part and before and "failed" not in before:
        return  # what was measured once is not taken away by a day on which it was not
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
    if target == FIGURES:
        write_page()


if __name__ == "__main__":
    raise SystemExit(main())
