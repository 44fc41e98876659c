"""The ratios that matter in a few minutes, beside the committed ones: information, never a test.

`python -m benchmarks.quick`. Exit code 0 whatever the figures: a small topic on a busy machine says little, and what it
says is for a person to judge. What fails is said.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from benchmarks.children import end_in_order
from benchmarks.figures import compare
from benchmarks.headline import BY_HAND, LAND, PYARROW, RAW, SPARK, TYPED_SPARK, WHOLE, headline
from benchmarks.options import Options
from benchmarks.page import FIGURES
from benchmarks.parts import contest
from benchmarks.side_by_side import say
from benchmarks.test_bed import open_test_bed

_OPTIONS = Options(mib=256, rounds=2, layouts=("sticky", "device", "pairs"), extras=False)
_CONTENDERS = (RAW, LAND, PYARROW, SPARK, TYPED_SPARK, BY_HAND, WHOLE)


def main() -> int:
    end_in_order()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="wavestitch-bench-") as folder,
            open_test_bed(Path(folder), say) as bed,
        ):
            *_, found = contest.measure(bed, _OPTIONS, say, only=_CONTENDERS)
    except Exception as error:  # told, and no more: see above
        print(f"nothing was measured: {type(error).__name__}: {error}")
        return 0
    now = headline({"side-by-side": found})["ratios"]
    committed = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    then = committed.get("ratios", {})
    lines = compare(now, then)
    print(
        f"\n{_OPTIONS.mib} MiB, {_OPTIONS.rounds} rounds; committed: {FIGURES.name}, of {committed.get('mib')} MiB, "
        "where what does not grow weighs less: to compare two trees, run both"
    )
    print("\n".join(lines) if lines else f"{FIGURES.name} has none of these ratios; `make bench` writes it")
    for name, value in now.items():
        if value is not None and not then.get(name):
            print(f"{name:44}{value:9.2f}  not committed yet")
    for layout in _OPTIONS.layouts:
        for name, why in found[layout].get("failed", {}).items():
            print(f"failed: {layout}, {name}: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
