"""SIGKILL at eight points of a batch; carried through again, the tables and offsets are those of an undisturbed run.

Names what it proves: I1, I2, I3, I4, I6.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders.recordings import cut, recordings
from tests.conftest import TopicFactory
from tests.deployment_rig import STREAM, make_deployment_rig
from tests.faults.killed_batch import POINTS, run_killed
from tests.object_store import ObjectStore, object_store
from wavestitch.batch.stream_state import load_state
from wavestitch.contracts.position import parse_tag
from wavestitch.contracts.quantities import Partition
from wavestitch.local.broker import Broker

_DEADLINE = 120


# Spark dies with the step. At the other points it has done its work before, or has not begun: one that is there does.
ON_A_SPARK_OF_ITS_OWN_TOO = ("mid-write in Spark",)
# At the other points a catalog has heard of the batch what one in SQLite has, or nothing yet.
IN_ANOTHER_CATALOG_TOO = ("between commit and offsets",)
# Where payload is on its way there, and is fetched from there.
IN_A_STORE_TOO = ("mid-read", "mid-write in Spark")


@pytest.fixture
def store() -> Iterator[ObjectStore]:
    with object_store() as found:
        yield found


@pytest.mark.parametrize(
    ("point", "with_"),
    [
        *((point, "") for point in POINTS),
        *(
            (point, catalog)
            for point in IN_ANOTHER_CATALOG_TOO
            for catalog in ("catalog_in_postgresql", "catalog_by_rest")
        ),
        *((point, "payload in a store") for point in IN_A_STORE_TOO),
        *((point, "a Spark of its own") for point in ON_A_SPARK_OF_ITS_OWN_TOO),
    ],
)
def test_a_batch_killed_there_is_carried_through_again(
    point: str,
    with_: str,
    tmp_path: Path,
    broker: Broker,
    topic_factory: TopicFactory,
    java_home: Path,
    request: pytest.FixtureRequest,
) -> None:
    store = request.getfixturevalue("store") if with_ == "payload in a store" else None
    whole = make_deployment_rig(
        tmp_path / "deployment",
        bootstrap=broker.bootstrap,
        topic=topic_factory(partitions=2),
        java_home=java_home,
        catalog=request.getfixturevalue(with_) if with_.startswith("catalog") else "",
        spark=None if with_ == "a Spark of its own" else request.getfixturevalue("spark_server"),
        payload="" if store is None else store.payload_settings(tmp_path / "keys"),
    )
    sent = recordings(8, samples=60_000)
    chunks = cut(sent, 8192)
    whole.send([c for i, c in enumerate(chunks) if i != 20] + [chunks[3]])  # one is late, one is there twice

    run_killed(whole.folder / "wavestitch.toml", point, seconds=_DEADLINE)
    plans = [p.name for p in (whole.folder / "landing" / STREAM).iterdir()]
    assert len(plans) == 1
    whole.run(plan_id=plans[0])
    expected = {r.waveform_id: bytes(r.samples) for r in sent}
    late = chunks[20].waveform_id
    assert whole.published() == {i: b for i, b in expected.items() if i != late}

    if store is not None:
        assert any("/payload-" in path for method, path in store.asked if method == "PUT")
        assert store.names("payload") == set()

    # Once more: a finished plan changes nothing (I6), and the next batch heals what was open.
    head = whole.deployment.tables(STREAM).head()
    again = whole.run(plan_id=plans[0])
    assert again["published"]["again"]
    assert whole.deployment.tables(STREAM).head() == head
    whole.send([chunks[20]])
    whole.run_without_spark()
    assert whole.published() == expected

    now = load_state(whole.deployment.tables(STREAM), topic_id="")
    assert now.held == []
    ends = whole.deployment.log.ends(whole.topic, [Partition(0), Partition(1)])
    group = whole.deployment.log.group_offsets(whole.group, whole.topic, [Partition(0), Partition(1)])
    for p in (0, 1):
        found = group[Partition(p)]
        assert found is not None
        assert found.offset == now.head.positions[Partition(p)].next_offset == ends[Partition(p)].stable_end
        tag = parse_tag(found.metadata)
        assert tag is not None
        assert tag.version == now.head.version
    rows = [b for b in whole.deployment.tables(STREAM).batches() if b.partitions]
    assert len(rows) == 2
    assert all(b.identity_balances for b in rows)
