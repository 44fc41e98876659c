"""A few seeds of every fault class of one machine; `python -m tests.faults.campaign` runs them all.

Names what they prove: I1 to I4, I6 and I7, and that a failed batch gives its disk space back.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.fault_class import Bench, FaultClass
from tests.faults.file_faults import Stand, combinations
from tests.faults.local_faults import CLASSES
from wavestitch.local.broker import Broker

QUICK = [pytest.param(c, seed, id=f"{c.name} {seed}") for c in CLASSES for seed in c.quick]


@pytest.mark.parametrize(("fault", "seed"), QUICK)
def test_nothing_is_lost_doubled_or_altered(
    fault: FaultClass, seed: int, tmp_path: Path, broker: Broker, java_home: Path
) -> None:
    counts = fault.run(Bench(tmp_path, broker.bootstrap, java_home), seed)
    assert counts.clean, counts
    assert counts.records > 0
    assert counts.ends


def test_the_calls_of_a_batch_and_their_errors_are_listed_whole_and_always_alike(
    tmp_path: Path, broker: Broker, java_home: Path
) -> None:
    stand = Stand(Bench(tmp_path, broker.bootstrap, java_home))
    once, again = stand.watch(), stand.watch()
    listed = combinations(once.calls)
    assert once.result == again.result == "done"
    assert listed == combinations(again.calls)
    assert len(set(listed)) == len(listed) >= 300
    # Every kind of call on every kind of file is in it, in every step in which it occurs.
    assert {f.where for f in listed} == set(once.calls)
    assert {where.step for where in once.calls} >= {"plan", "read", "reassemble", "validate", "publish"}
