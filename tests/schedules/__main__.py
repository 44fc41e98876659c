"""Play all schedules of every pair within the bounds, and print how many there are; goes on where it stopped.

python -m tests.schedules [--minutes N]             every pair, every bound
python -m tests.schedules [--minutes N] NAME …      the pairs whose names have one of these words
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tests.schedules.played import WHOLE, Played, already, play
from tests.schedules.scenarios import SCENARIOS


def show(one: Played) -> None:
    said = f"{one.schedules} schedules, {one.states} states, {one.worlds} worlds"
    print(f"{one.pair}, {one.bounds}: {said}, {one.violation or 'no violation'}", flush=True)
    if one.violation:
        print("    after: " + "\n           ".join(one.way), flush=True)


def main(argv: Sequence[str]) -> int:
    ask = argparse.ArgumentParser(prog="python -m tests.schedules", description=__doc__)
    ask.add_argument("names", nargs="*", metavar="NAME")
    ask.add_argument("--minutes", type=float, default=24 * 60.0, help="the next call goes on where this one stopped")
    options = ask.parse_args(argv)
    pairs = [name for name in SCENARIOS if any(word in name for word in options.names or [""])]
    left = play(pairs, WHOLE, until=time.monotonic() + options.minutes * 60, told=show)
    played = [p for p in already() if p.pair in pairs]
    wrong = sum(bool(p.violation) for p in played)
    schedules, worlds = sum(p.schedules for p in played), sum(p.worlds for p in played)
    print(f"all: {schedules} schedules, {worlds} worlds checked and repaired, {wrong} violations")
    if left:
        print(f"{len(left)} are still to be played: {'; '.join(left)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
