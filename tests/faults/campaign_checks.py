"""What a campaign checks beside its runs: histories, schedules, mutants, hostile input, and the commit on each catalog.

What takes long is played within the time that is given, and goes on where it stopped.
"""

from __future__ import annotations

import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.code_digest import WORLD, code_digest

HISTORIES = 100_000
SOAK_HOURS = 1.0
CATALOGS = "tests/domain/test_one_commit.py"
"""Tests of the commit, each of them on every kind of catalog that its name says."""


def check_beside(until: float) -> dict[str, Any]:
    """What other parts check, each left out (and so not ok) where it fails, or the time is over before it begins."""
    found = {}
    for name, check in CHECKS.items():
        if time.monotonic() > until:
            break
        try:
            found[name] = check(until)
        except Exception as error:  # a check that cannot be made is one that did not hold
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
    return found


def histories_so_far() -> tuple[int, int]:
    """How many the present code has played without an anomaly, and the records in them."""
    from tests.histories.run import CODE, done_so_far  # noqa: PLC0415

    _, found = done_so_far(code_digest(CODE, apart=WORLD))
    return (0, 0) if found.anomalies else (found.histories, found.records)


def soak_left() -> float:
    """Hours of it that the present code has not passed."""
    from tests.soak.account import hours_passed  # noqa: PLC0415

    return max(0.0, SOAK_HOURS - hours_passed())


def _histories(until: float) -> tuple[int, int]:
    """How many were played, and the records in them; goes on where it stopped."""
    from tests.histories.run import campaign  # noqa: PLC0415

    found = campaign(HISTORIES, seconds=max(0.0, until - time.monotonic()), workers=2)
    assert not found.anomalies, found.claim()
    return found.histories, found.records


def _schedules(until: float) -> dict[str, Any]:
    """With one switch all of them; what `make schedules` has played of this code counts, too."""
    from tests.schedules.played import ONE_SWITCH, play  # noqa: PLC0415
    from tests.schedules.scenarios import SCENARIOS  # noqa: PLC0415

    play(list(SCENARIOS), ONE_SWITCH, until=until, told=lambda played: print(played, file=sys.stderr))
    return schedules_so_far()


def schedules_so_far() -> dict[str, Any]:
    """What the present code has played. `left_of_the_whole`: for `make schedules`."""
    from tests.schedules.played import ONE_SWITCH, WHOLE, already, to_play  # noqa: PLC0415
    from tests.schedules.scenarios import SCENARIOS  # noqa: PLC0415

    played = already()
    return {
        "played": sum(p.schedules for p in played),
        "violations": sum(bool(p.violation) for p in played),
        "left": [f"{pair}, {b}" for pair, b in to_play(SCENARIOS, ONE_SWITCH)],
        "left_of_the_whole": [f"{pair}, {b}" for pair, b in to_play(SCENARIOS, WHOLE)],
    }


def generated_mutants() -> tuple[dict[str, int], list[str]]:
    """What the account says of modules that are as they were when they were mutated, and the others; tries none."""
    from tests.mutants.__main__ import MOST, left_to_try  # noqa: PLC0415
    from tests.mutants.account import read_account  # noqa: PLC0415

    changed = left_to_try([], most=0)
    known = [tried for module, tried in read_account().items() if module not in changed]
    figures = {
        "modules": len(known),
        **{name: sum(getattr(t, name) for t in known) for name in ("made", "tried", "killed")},
        "survivors": sum(len(t.survivors) for t in known),
        "equivalent": sum(t.equivalent for t in known),
        "without_a_reason": sum(not why for t in known for why in t.survivors.values()),
    }
    return figures, left_to_try([], most=MOST)


def _catalogs(_until: float) -> dict[str, dict[str, int]]:
    """By kind of catalog, how many tests of the commit ran on it, and how many failed."""
    found: dict[str, Counter[str]] = {}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tests.xml"
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", CATALOGS, f"--junitxml={path}"],
            cwd=Path(__file__).resolve().parents[2],
            stdout=sys.stderr,
            check=False,
        )
        for case in ET.parse(path).iter("testcase"):
            kinds = [k for k in ("sqlite", "postgresql", "rest") if k in case.attrib["name"].partition("[")[2]]
            bad = case.find("failure") is not None or case.find("error") is not None
            for kind in kinds or ["rest"]:  # requests that are sent twice or lost are about that one
                found.setdefault(kind, Counter()).update(ran=1, failed=bad)
    return {kind: {"ran": counts["ran"], "failed": counts["failed"]} for kind, counts in sorted(found.items())}


def _mutants(_until: float) -> tuple[int, int]:
    from tests.histories.mutants import run_mutants  # noqa: PLC0415

    return run_mutants()


def _hostile(_until: float) -> tuple[int, int]:
    from tests.hostile.count import contained  # noqa: PLC0415

    return contained()


CHECKS: dict[str, Callable[[float], Any]] = {
    "schedules": _schedules,
    "histories": _histories,
    "mutants": _mutants,
    "hostile": _hostile,
    "catalogs": _catalogs,
}
"""In this order, each given the moment at which its time is over."""
