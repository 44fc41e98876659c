"""How long each target was fuzzed so far, over all runs, beside the seeds: so that an hour can be reached in pieces.

Counted is the time of a processor that the fuzzed processes took, and no waiting: a machine that does something else
meanwhile fuzzes less, and the clock on the wall does not see it.
Says nothing of what was covered when: the code has changed since. A target that is young in it goes first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.run_account import write_account

ACCOUNT = Path(__file__).parent / "account.json"


@dataclass(frozen=True, slots=True)
class Spent:
    """Of one target: sums over its runs, and the most that any of them reached."""

    cpu_seconds: float = 0.0
    executions: int = 0
    edges: int = 0
    features: int = 0

    def plus(self, other: Spent) -> Spent:
        return Spent(
            round(self.cpu_seconds + other.cpu_seconds, 1),
            self.executions + other.executions,
            max(self.edges, other.edges),
            max(self.features, other.features),
        )


def read_account(path: Path = ACCOUNT) -> dict[str, Spent]:
    if not path.exists():
        return {}
    return {name: Spent(**spent) for name, spent in json.loads(path.read_text(encoding="utf-8")).items()}


def add_to_account(name: str, spent: Spent, path: Path = ACCOUNT) -> Spent:
    """The sum so far. One process at a time writes it."""
    known = read_account(path)
    known[name] = known.get(name, Spent()).plus(spent)
    write_account(path, {n: asdict(s) for n, s in sorted(known.items())})
    return known[name]


def still_to_run(names: Iterable[str], *, goal_seconds: float, spent: Mapping[str, Spent]) -> dict[str, float]:
    """What each lacks, in seconds of a processor; who had least comes first, who has reached the goal is left out."""
    lacking = {name: goal_seconds - spent.get(name, Spent()).cpu_seconds for name in names}
    return {name: left for name, left in sorted(lacking.items(), key=lambda item: (-item[1], item[0])) if left > 1}
