"""All fault classes: those of the broker, and those of one machine."""

from __future__ import annotations

from tests.faults.broker_faults import CLASSES as BROKER
from tests.faults.fault_class import FaultClass
from tests.faults.local_faults import CLASSES as LOCAL


def all_classes() -> tuple[FaultClass, ...]:
    found = (*BROKER, *LOCAL)
    names = [c.name for c in found]
    assert len(set(names)) == len(names), f"two classes have one name: {sorted(names)}"
    return found
