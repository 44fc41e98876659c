"""All schedules of every pair, one pair and bound after the other; goes on where it stopped.

What was played stands in `.wavestitch/faults/schedules.jsonl`, with a digest of the code that played it: a line of
other code is kept and not counted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.code_digest import code_digest
from tests.schedules.explore import Bounds, explore
from tests.schedules.scenarios import SCENARIOS

STATE = Path(__file__).resolve().parents[2] / ".wavestitch" / "faults" / "schedules.jsonl"
ONE_SWITCH = (Bounds(1, 0, 0),)
WHOLE = (Bounds(2, 0, 0), Bounds(1, 1, 0), Bounds(1, 0, 1))
_CODE = ("wavestitch/batch", "wavestitch/contracts", "tests/schedules", "tests/fakes", "tests/domain", "tests/builders")


@dataclass(frozen=True, slots=True)
class Played:
    """Of one pair within one bound. `violation`: what was broken, empty where nothing was; `way`: the steps to it."""

    pair: str
    bounds: str
    schedules: int
    states: int
    worlds: int
    violation: str
    way: tuple[str, ...] = ()


def already(state: Path = STATE) -> list[Played]:
    """What this very code has played; half a line is none."""
    code, found = code_digest(_CODE), []
    for line in state.read_text(encoding="utf-8").splitlines() if state.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if row.pop("code") == code:
            found.append(Played(**{**row, "way": tuple(row["way"])}))
    return found


def play(
    pairs: Sequence[str],
    bounds: Sequence[Bounds],
    *,
    until: float,
    told: Callable[[Played], None],
    state: Path = STATE,
) -> list[str]:
    """Those that are not played yet; what is begun is ended. Gives what is left where the time was over first."""
    done, code = {(p.pair, p.bounds) for p in already(state)}, code_digest(_CODE)
    left = [(pair, b) for pair in pairs for b in bounds if (pair, str(b)) not in done]
    while left and time.monotonic() < until:
        pair, bound = left.pop(0)
        found = explore(SCENARIOS[pair], bound)
        way = tuple(found.way) if found.violation else ()
        played = Played(pair, str(bound), found.schedules, found.states, found.worlds, found.violation, way)
        state.parent.mkdir(parents=True, exist_ok=True)
        with state.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**asdict(played), "code": code}) + "\n")
        told(played)
    return [f"{pair}, {b}" for pair, b in left]
