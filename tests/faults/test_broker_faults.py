"""Every fault class that needs a broker, on few seeds; `python -m tests.faults.campaign` runs all of them.

Names what it proves: I1 to I8, as far as the fault of the class touches them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from consumers.log_view import KafkaLog
from tests.faults.broker_faults import CLASSES
from tests.faults.fault_class import Bench, FaultClass, Need, named
from wavestitch.contracts.errors import Transient
from wavestitch.contracts.quantities import Partition
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.local.broker import Broker

ON_ONE_BROKER = [(c, s) for c in CLASSES if c.need is Need.BROKER for s in c.quick]


@pytest.mark.parametrize(("fault", "seed"), ON_ONE_BROKER, ids=named)
def test_nothing_is_lost_twice_altered_or_unexplained_whatever_befalls_log_or_batch(
    fault: FaultClass, seed: int, tmp_path: Path, broker: Broker, java_home: Path
) -> None:
    counts = fault.run(Bench(tmp_path, broker.bootstrap, java_home), seed)
    assert counts.clean, counts


def test_where_no_broker_answers_the_sentence_names_each_of_them() -> None:
    nobody = KafkaLog(KafkaSettings("127.0.0.1:1,127.0.0.1:2"), deadline=3)
    questions: list[Callable[[], object]] = [lambda: nobody.topic("t"), lambda: nobody.ends("t", [Partition(0)])]
    for ask in (*questions, lambda: nobody.members("g")):
        with pytest.raises(Transient, match=r"127.0.0.1:1/.*refused") as raised:
            ask()
        assert "127.0.0.1:2/" in raised.value.message
        assert "identical" not in raised.value.message
