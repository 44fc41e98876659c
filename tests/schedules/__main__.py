"""Play all schedules of every pair within the bounds, and print how many there are.

python -m tests.schedules             every pair, every bound
python -m tests.schedules NAME …      the pairs whose names have one of these words
"""

from __future__ import annotations

import sys

from tests.schedules.explore import Bounds, explore
from tests.schedules.scenarios import SCENARIOS

WHOLE = (Bounds(2, 0, 0), Bounds(1, 1, 0), Bounds(1, 0, 1))


def main(wanted: list[str]) -> int:
    schedules = worlds = wrong = 0
    for name, scenario in SCENARIOS.items():
        if wanted and not any(word in name for word in wanted):
            continue
        for bounds in WHOLE:
            found = explore(scenario, bounds)
            schedules, worlds, wrong = schedules + found.schedules, worlds + found.worlds, wrong + bool(found.violation)
            said = f"{found.schedules} schedules, {found.states} states, {found.worlds} worlds"
            print(f"{name}, {bounds}: {said}, {found.violation or 'no violation'}", flush=True)
            if found.violation:
                print("    after: " + "\n           ".join(found.way), flush=True)
    print(f"all: {schedules} schedules, {worlds} worlds checked and repaired, {wrong} violations")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
