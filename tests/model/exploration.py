"""Breadth first through everything that may happen, so that a violation comes with a shortest way to it.

python -m tests.model.exploration            every scenario of the design
python -m tests.model.exploration all        and every mutant: a rule of the design dropped, which must be found out
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from tests.model.checks import Violation
from tests.model.protocol import Protocol
from tests.model.world import DISCARDED, GATED, HELD, MORE_COPIES, PARTED, REPAIRED, WAVES, Budget, Scenario, State


class Found(NamedTuple):
    """`violation` empty: none. `way`: the shortest way there. `whole`: all states within the budget were seen."""

    states: int
    violation: str
    way: tuple[str, ...]
    whole: bool


def explore(
    scenario: Scenario, dropped: str = "", *, most: int = 10_000_000, look: Callable[[State], None] | None = None
) -> Found:
    """Every state that can be reached within the budget, at most `most`; `look` is shown each of them."""
    protocol = Protocol(scenario.world, dropped)
    first = protocol.first(scenario.budget)
    came: dict[State, tuple[str, State] | None] = {first: None}
    queue = deque([first])
    while queue:
        state = queue.popleft()
        try:
            protocol.check(state)
            if look is not None:
                look(state)
            nexts = list(protocol.successors(state))
        except Violation as violation:
            return Found(len(came), str(violation), _way(came, state), False)
        for name, reached in nexts:
            if reached not in came:
                came[reached] = name, state
                queue.append(reached)
        if len(came) > most:
            return Found(len(came), "", (), False)
    return Found(len(came), "", (), True)


def _way(came: dict[State, tuple[str, State] | None], state: State) -> tuple[str, ...]:
    way: list[str] = []
    while (step := came[state]) is not None:
        name, state = step
        way.append(name)
    return tuple(reversed(way))


SCENARIOS = {
    "runs": Scenario(
        WAVES,
        Budget(runs=2, records=4),
        (
            "no-compare-and-set",
            "no-generation",
            "no-start-check",
            "publish-replays",
            "expired-means-latest",
            "overwrite-foreign",
        ),
    ),
    "catalogs": Scenario(
        WAVES,
        Budget(runs=2, rewinds=0, resets=0, records=3, catalogs=3),
        (
            "any-table-is-ours",
            "newer-is-older",
            "forks-pass",
            "lost-means-group",
            "what-is-skipped-is-not-named",
            "who-moves-nothing-does-not-ask-the-group",
            "the-group-is-asked-when-planning-only",
        ),
    ),
    "held": Scenario(
        HELD,
        Budget(runs=1, rewinds=0, resets=0, expiries=0, decisions=2, mends=1, afresh=1, backfills=False),
        (
            "discard-deletes",
            "tombstones-do-not-count",
            "restore-means-open",
            "of-a-conflict-the-first-is-taken",
            "what-is-staged-counts",
        ),
    ),
    "decisions beside ingests": Scenario(
        MORE_COPIES,
        Budget(runs=2, rewinds=0, resets=0, expiries=0, decisions=1, backfills=False),
        ("accept-takes-conflicts", "a-decision-is-of-whatever-is-there", "only-a-pick-is-of-what-was-shown"),
    ),
    "gates": Scenario(
        GATED,
        Budget(runs=3, resets=0, expiries=0, gates=1, backfills=False),
        (
            "a-closed-gate-bars-nobody",
            "the-gate-is-asked-when-planning-only",
            "park-holds-nothing",
            "what-is-parked-is-decided-afresh",
            "an-abandoned-batch-is-passed",
        ),
    ),
    "gates beside backfills": Scenario(
        GATED,
        Budget(runs=3, rewinds=0, resets=0, expiries=0, gates=1),
        ("a-backfill-asks-at-no-gate",),
    ),
    "gates beside decisions": Scenario(
        REPAIRED,
        Budget(runs=2, rewinds=0, resets=0, expiries=0, records=4, gates=1, decisions=1, mends=1, backfills=False),
        ("a-closed-gate-knows-ingests-only",),
    ),
    "partitions": Scenario(
        PARTED,
        Budget(runs=2, expiries=0, records=4, backfills=False, parts=True),
        (
            "a-rewind-writes-every-partition",
            "an-ingest-of-one-partition-moves-all",
            "the-fence-asks-what-is-read-only",
        ),
    ),
    "undo of decisions": Scenario(
        DISCARDED,
        Budget(runs=2, rewinds=0, resets=0, expiries=0, records=2, decisions=1, backfills=False, undos=1),
        ("an-undo-takes-back-whatever-is-held", "an-undo-is-not-looked-at-again"),
    ),
    "undo of batches": Scenario(
        PARTED,
        Budget(runs=2, rewinds=1, resets=0, expiries=0, records=2, backfills=False, parts=True, undos=1),
        ("an-undo-puts-every-partition-back", "an-undo-keeps-the-generation"),
    ),
    "retention": Scenario(
        WAVES,
        Budget(runs=2, rewinds=1, resets=1, expiries=0, records=3, retentions=1),
        (
            "a-position-jumps-over-the-cut",
            "what-is-gone-is-taken-for-a-hole",
            "what-is-skipped-is-not-named",
            "more-is-named-than-is-passed",
        ),
    ),
    "retention of partitions": Scenario(
        PARTED,
        Budget(runs=2, rewinds=0, resets=0, expiries=0, records=4, backfills=False, parts=True, retentions=1),
        ("what-is-gone-is-taken-for-a-hole", "what-is-skipped-is-not-named"),
    ),
    "retention beside decisions": Scenario(
        MORE_COPIES,
        Budget(runs=1, rewinds=0, resets=0, expiries=0, decisions=1, undos=1, backfills=False, retentions=1),
        ("what-is-held-needs-the-log",),
    ),
    "retention at a closed gate": Scenario(
        GATED,
        Budget(runs=2, rewinds=0, resets=0, expiries=0, gates=1, backfills=True, retentions=1),
        ("what-is-gone-is-taken-for-a-hole",),
    ),
    "retention beside catalogs": Scenario(
        WAVES,
        Budget(runs=1, rewinds=0, resets=0, records=2, catalogs=2, retentions=1),
        ("what-is-skipped-is-not-named",),
    ),
    "partitions of catalogs": Scenario(
        PARTED,
        Budget(runs=2, rewinds=0, resets=0, records=2, catalogs=2, backfills=False, parts=True),
        ("only-the-first-partition-is-asked",),
    ),
}


def main(arguments: list[str]) -> int:
    """0 where the design holds and every mutant asked for is found out."""
    wrong = 0
    for name, scenario in SCENARIOS.items():
        for dropped in ("", *scenario.mutants) if arguments == ["all"] else ("",):
            found = explore(scenario, dropped)
            said = f"{found.violation}\n    after: {' > '.join(found.way)}" if found.violation else "no violation"
            print(f"{name}, {dropped or 'the design'}: {found.states} states, {said}", flush=True)
            wrong += bool(found.violation) != bool(dropped)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
