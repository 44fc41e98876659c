"""What became of the mutants of each module: how many were made, tried and killed, and which survive, and why.

A survivor has its reason there, written by hand, and keeps it as long as it survives under the same name. Counted is
what was tried on a source that is the same still; what its tests were, the account does not see.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.run_account import write_account

ACCOUNT = Path(__file__).parent / "account.json"


@dataclass(frozen=True, slots=True)
class Tried:
    """Of one module. `source`: digest of what was mutated and how; `survivors`: by name, why nothing has to kill it."""

    source: str
    made: int
    tried: int
    killed: int
    survivors: Mapping[str, str] = field(default_factory=dict)

    @property
    def equivalent(self) -> int:
        """Those of which no test can tell the product, by their reasons."""
        return sum(why.startswith(EQUIVALENT) for why in self.survivors.values())


EQUIVALENT = "equivalent"
_MAKERS = ("operators.py", "mutant.py")


def digest_of(source: str) -> str:
    """Of a module's source, and of what makes its mutants: other mutants are another sample."""
    made_by = [(Path(__file__).parent / name).read_text(encoding="utf-8") for name in _MAKERS]
    return hashlib.sha256("".join([source, *made_by]).encode()).hexdigest()[:16]


def score(known: Iterable[Tried]) -> float:
    """Killed, of all that were tried and are not equivalent: the mutation score."""
    tried, killed = 0, 0
    for one in known:
        tried, killed = tried + one.tried - one.equivalent, killed + one.killed
    return killed / tried if tried else 1.0


def read_account(path: Path = ACCOUNT) -> dict[str, Tried]:
    if not path.exists():
        return {}
    return {name: Tried(**found) for name, found in json.loads(path.read_text(encoding="utf-8")).items()}


def add_to_account(module: str, tried: Tried, path: Path = ACCOUNT) -> Tried:
    """Reasons that were written for the same survivors are kept. One process at a time writes it."""
    known = read_account(path)
    reasons = known[module].survivors if module in known else {}
    survivors = {name: reasons.get(name, why) for name, why in sorted(tried.survivors.items())}
    known[module] = Tried(tried.source, tried.made, tried.tried, tried.killed, survivors)
    write_account(path, {n: asdict(t) for n, t in sorted(known.items())})
    return known[module]
