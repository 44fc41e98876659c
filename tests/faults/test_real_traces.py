"""What a real run leaves is a way through the protocol's model, or its case fails: shown by products that are wrong,
and by a trace that is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.broker_faults import CLASSES
from tests.faults.broker_faults_case import Case, play
from tests.faults.fault_class import Bench
from tests.faults.real_witness import Witness
from tests.histories.events import Committed, Projected
from tests.histories.seeded_bugs.of_heads import the_fence_lets_everybody_through
from tests.histories.seeded_bugs.of_offsets import what_a_rewind_skips_is_not_recorded
from tests.histories.tracing import OffTrack, follow
from tests.wrong_products import (
    the_group_is_written_before_the_head_is_committed,
    whatever_the_group_shows_is_written_over,
)
from wavestitch.local.broker import Broker

Patch = pytest.MonkeyPatch
WRONG: dict[str, tuple[Callable[[Patch], None], str, int, str]] = {
    plant.__name__.replace("_", " "): (plant, fault, seed, said)
    for plant, fault, seed, said in (
        (the_group_is_written_before_the_head_is_committed, "chunks repeated", 0, "there is none such"),
        (the_fence_lets_everybody_through, "rewound under a run", 0, "a fenced"),
        (whatever_the_group_shows_is_written_over, "group reset under a run", 4, "nobody has taken over"),
        (what_a_rewind_skips_is_not_recorded, "retention between plan and read", 0, "does not name what it goes over"),
    )
}
"""The product, a case in which it shows, and what is said."""


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_product_leaves_the_model_on_a_real_broker(
    name: str, monkeypatch: Patch, tmp_path: Path, broker: Broker, java_home: Path
) -> None:
    plant, fault, seed, said = WRONG[name]
    (case,) = [c for c in CLASSES if c.name == fault]
    plant(monkeypatch)
    with pytest.raises(OffTrack, match=said):
        case.run(Bench(tmp_path, broker.bootstrap, java_home), seed)


def test_a_trace_that_lacks_a_head_or_shows_another_is_no_way_through_the_model(
    tmp_path: Path, broker: Broker, java_home: Path
) -> None:
    kept: list[Witness] = []

    def act(case: Case) -> None:
        case.produce()
        case.run()
        kept.append(case.witness)

    counts = play(Bench(tmp_path, broker.bootstrap, java_home), 0, act)
    assert counts.clean
    seen = kept[0].events
    assert counts.steps == follow(seen)
    assert counts.steps["commit ingest"] > 0
    last = max(e.sequence for e in seen if isinstance(e, Committed))
    with pytest.raises(OffTrack, match="there is none such"):
        follow(e for e in seen if not (isinstance(e, Committed) and e.sequence == last))
    with pytest.raises(OffTrack, match="there is none such"):
        follow(replace(e, sequence=e.sequence + 1) if isinstance(e, Projected) else e for e in seen)
