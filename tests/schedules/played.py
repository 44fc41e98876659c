"""All schedules of every pair, one pair and bound after the other; goes on where it stopped.

What the present code has played stands in `account.json`, which is committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.code_digest import WORLD, code_digest
from tests.run_account import keep_run, read_run
from tests.schedules.explore import explore_in_pieces
from tests.schedules.scenarios import SCENARIOS
from tests.schedules.state import Bounds

ACCOUNT = Path(__file__).parent / "account.json"
BEGUN = Path(__file__).resolve().parents[2] / ".wavestitch" / "schedules"
"""What was begun and is not ended, by the digest of the code."""
ONE_SWITCH = (Bounds(1, 0, 0),)
WHOLE = (Bounds(2, 0, 0), Bounds(1, 1, 0), Bounds(1, 0, 1), Bounds(1, 1, 1), Bounds(2, 1, 1))
"""The last one has all others in it. They are played first because a wrong order shows sooner in them."""
SCHEDULED = "tests.schedules.scenarios"


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


def _code() -> str:
    return code_digest(SCHEDULED, apart=WORLD)


def already(account: Path = ACCOUNT) -> list[Played]:
    """What this very code has played."""
    rows = read_run(account, _code()).get("played", ())
    return [Played(**{**row, "way": tuple(row["way"])}) for row in rows]


def to_play(pairs: Collection[str], bounds: Sequence[Bounds], account: Path = ACCOUNT) -> list[tuple[str, Bounds]]:
    """For all pairs the first bounds, then the next. What has none of it left out was played with it."""
    done = {(p.pair, p.bounds) for p in already(account)}
    named = {str(b): b for b in (*bounds, *ONE_SWITCH, *WHOLE)}
    covered = [(pair, named[said]) for pair, said in done if said in named]
    return [(p, b) for b in bounds for p in pairs if not any(p == pair and other.covers(b) for pair, other in covered)]


def play(
    pairs: Sequence[str],
    bounds: Sequence[Bounds],
    *,
    until: float,
    told: Callable[[Played], None],
    account: Path = ACCOUNT,
    begun: Path = BEGUN,
) -> list[str]:
    """Those that are not played yet. Gives what is left where the time was over first: the next call goes on in the
    midst of it."""
    while (left := to_play(pairs, bounds, account)) and time.monotonic() < until:
        pair, bound = left[0]
        kept = (
            begun / code_digest(SCHEDULED, apart=WORLD) / f"{pair} {'-'.join(map(str, bound))}.pickle".replace(" ", "-")
        )
        found = explore_in_pieces(SCENARIOS[pair], bound, kept=kept, until=until)
        if found is None:
            break
        way = tuple(found.way) if found.violation else ()
        played = Played(pair, str(bound), found.schedules, found.states, found.worlds, found.violation, way)
        keep_run(
            account, code_digest(SCHEDULED, apart=WORLD), {"played": [asdict(p) for p in (*already(account), played)]}
        )
        told(played)
    return [f"{pair}, {b}" for pair, b in left]
