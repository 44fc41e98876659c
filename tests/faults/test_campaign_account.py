"""What a campaign has run stands in a file: another process goes on there, and other code begins anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.code_digest import modules_of, spoken
from tests.faults.campaign_account import CODE, ClassAccount, add_case, forget_failed, read_classes
from tests.faults.campaign_report import _row
from tests.faults.fault_class import Counts, FaultClass, Need
from tests.run_account import with_range
from tests.soak.account import hours_passed, keep_soak

FAULT = FaultClass("a fault", (3,), Need.NOTHING, 4, (), lambda _bench, _seed: Counts(1))


def ran(seed: int, *, ok: bool = True, **more: Any) -> dict[str, Any]:
    said = {
        "records": 5,
        "ends": ["done", "done"],
        "steps": {"project": 2},
        "seconds": 2.0,
        "peak_mib": 70 + seed,
        "longest_run": 1.0 + seed,
    }
    return {"class": "a fault", "seed": seed, "ok": ok, "run_deadline": 9.0, **said, **more}


def test_what_was_run_is_summed_up_by_class_and_what_failed_stands_there_until_it_is_run_again(tmp_path: Path) -> None:
    account = tmp_path / "account.json"
    for run in (ran(0), ran(2, ok=False, lost=1, error="why"), ran(1), ran(9)):
        add_case(run, account)
    (known,) = read_classes(account).values()
    assert known.seeds == [[0, 2], [9, 10]]
    assert known.done == {0, 1, 2, 9}
    assert known.steps == {"project": 6}
    row = _row(FAULT, {"a fault": known})
    assert (row["runs"], row["failed_seeds"], row["lost"], row["records"]) == (3, [2], 1, 20)
    assert (row["ends"], row["peak_mib"], row["seconds"], row["longest_run"]) == ({"done": 6}, 79, 8.0, 10.0)
    forget_failed(account)
    assert read_classes(account)["a fault"].done == {0, 1, 9}


def test_what_other_code_has_run_is_not_counted(tmp_path: Path) -> None:
    account = tmp_path / "account.json"
    add_case(ran(0), account)
    account.write_text(account.read_text().replace('"code": "', '"code": "another'))
    assert read_classes(account) == {}
    assert _row(FAULT, {})["runs"] == 0
    add_case(ran(1), account)
    assert read_classes(account)["a fault"].seeds == [[1, 2]]


def test_a_class_that_never_ran_has_done_nothing() -> None:
    assert ClassAccount().done == set()


@pytest.mark.parametrize(
    ("more", "joined"),
    [
        ((4, 5), [[0, 2], [4, 5], [7, 9]]),
        ((2, 3), [[0, 3], [7, 9]]),
        ((2, 7), [[0, 9]]),
        ((9, 10), [[0, 2], [7, 10]]),
        ((1, 2), [[0, 2], [7, 9]]),
    ],
)
def test_ranges_that_touch_become_one(more: tuple[int, int], joined: list[list[int]]) -> None:
    assert with_range([[0, 2], [7, 9]], *more) == joined


def test_what_is_said_beside_the_code_is_no_part_of_it(tmp_path: Path) -> None:
    one, other, third = (tmp_path / name for name in ("one.py", "other.py", "third.py"))
    one.write_text('"""Says."""\n\nx = 1  # why\n"""Of x."""\n\n\ndef f() -> None:\n    """Does."""\n')
    other.write_text("x = (1)\ndef f() -> None:\n    pass\n")
    third.write_text("x = 2\ndef f() -> None: ...\n")
    assert spoken(one) == spoken(tmp_path / "one.py")
    assert spoken(one) != spoken(third)
    other.write_text('x = (1)\ndef f() -> None:\n    """Does otherwise."""\n')
    assert spoken(one) == spoken(other)


def test_what_takes_part_is_what_is_imported_wherever_it_lies() -> None:
    played = modules_of("tests.histories.random_histories")
    assert {"consumers.batch_scan", "wavestitch.kafka.raw_log", "wavestitch.batch.publish"} <= played
    assert not played & {"tests.histories.mutants", "tests.histories.run", "wavestitch.cli", "wavestitch.ui.pages"}
    cases = modules_of(*CODE)
    assert "tests.histories.tracing" in cases
    assert not cases & {"tests.histories.random_histories", "tests.histories.checker"}, "they play none"
    readers = modules_of("consumers")
    assert {"consumers.unit_process", "wavestitch.kafka.raw_log"} <= readers
    assert not [name for name in modules_of("tests.soak") if name.startswith("tests.soak.test_")]


def test_a_soak_counts_where_it_passed_and_the_longest_stays(tmp_path: Path) -> None:
    account = tmp_path / "account.json"
    report: dict[str, Any] = dict.fromkeys(("seed", "waveforms", "sent_bytes"), 1)
    report |= {"events": {}, "disturbed": {}, "data": {}, "problems": []}
    assert hours_passed(account) == 0
    keep_soak({**report, "passed": True, "hours": 1.02}, account)
    keep_soak({**report, "passed": True, "hours": 0.1}, account)
    assert hours_passed(account) == 1.02
    keep_soak({**report, "passed": False, "hours": 0.5}, account)
    assert hours_passed(account) == 0
