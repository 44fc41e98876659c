"""Batches, a rewind and maintenance with the warehouse in an object store; landing and catalog are local. I1 to I3."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.builders.recordings import cut, recordings
from tests.builders.table_rows import first_head, published_row, stage
from tests.deployment_rig import STREAM
from tests.domain.maintenance_rig import limits, went
from tests.hostile.landed_deployment import FakeDeployment, make_landed_deployment, run_landed_batch
from tests.object_store import Fault, ObjectStore, object_store
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.contracts.errors import Altered, BadInput, StateUnknown, Transient, WavestitchError
from wavestitch.contracts.maintenance import MaintenanceReport
from wavestitch.contracts.quantities import EpochMs, Partition
from wavestitch.maintain.run import maintain_stream, raise_failures
from wavestitch.producers.chunking import ChunkRecord
from wavestitch.tables.catalog import open_catalog

HOUR_MS = 3_600_000
WRITES = ("PUT", "POST", "DELETE")
DATA = f"warehouse/{STREAM}/waveforms/data"


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with object_store() as found:
        yield found


class Whole:
    """A deployment whose warehouse is in the store."""

    def __init__(self, folder: Path, store: ObjectStore) -> None:
        self.store, self.folder = store, folder
        self.rig = make_landed_deployment(
            folder,
            stream_yaml="limits: {max_clock_skew: 36500 d}\n",
            partitions=2,
            warehouse=store.settings(folder / "keys"),
        )
        assert isinstance(self.rig.deployment, FakeDeployment)
        self.deployment = self.rig.deployment
        self.tables = self.deployment.tables(STREAM)

    def send(self, chunks: Sequence[ChunkRecord]) -> None:
        for n, c in enumerate(chunks):
            self.deployment.memory.append(
                Partition(n % 2), time.time_ns() // 1_000_000, c.key, c.headers, bytes(c.value)
            )

    def batch(self) -> dict[str, Any]:
        return run_landed_batch(self.deployment)

    def rewind(self) -> None:
        stream = self.deployment.stream(STREAM)
        log = self.deployment.log
        found = plan_rewind(stream, Target("earliest"), log=log, tables=self.tables, who="test", why="again")
        apply_rewind(stream, found, accept_skip=False, log=log, tables=self.tables)

    def maintain(self, *only: str, ahead_ms: int = 0, **changes: Any) -> MaintenanceReport:
        now = EpochMs(time.time_ns() // 1_000_000 + ahead_ms)
        report = maintain_stream(
            self.deployment, STREAM, apply=True, only=only, limits=limits(**changes), now=now, who="a test"
        )
        raise_failures([report])
        return report

    def put(self, name: str, content: bytes) -> None:
        with self.store.files.open_output_stream(f"{self.store.bucket}/{name}") as sink:
            sink.write(content)


@pytest.fixture
def whole(tmp_path: Path, server: ObjectStore) -> Iterator[Whole]:
    try:
        yield Whole(tmp_path, server)
    finally:
        server.fault, server.unlisted = (lambda _method, _path: None), ""
        server.files.delete_dir_contents(server.bucket)


def test_batches_a_rewind_and_maintenance_pass_with_the_warehouse_in_a_store(whole: Whole) -> None:
    sent = recordings(4, samples=1500)
    expected = {r.waveform_id: bytes(r.samples) for r in sent}
    chunks = cut(sent)
    late = chunks[1]
    whole.send([c for c in chunks[: len(chunks) // 2] if c is not late])
    first = whole.batch()
    assert first["counts"]["carried_out"]
    whole.send([late, *chunks[len(chunks) // 2 :]])
    whole.batch()
    assert whole.rig.published() == expected
    whole.rewind()
    done = whole.batch()
    assert done["counts"]["replay"] == len(chunks)
    assert done["waveforms"] == {"published": 0, "open": 0, "quarantined": 0}

    assert not list((whole.folder / "landing").rglob("*.parquet")), "what was sent stays in the landing"
    whole.put(f"{DATA}/README.txt", b"somebody else's")
    whole.put(f"{DATA}/dead-batch.parquet", b"x")
    whole.put(f"{DATA}/.0123456789abcdef0123456789abcdef.tmp", b"of a process that was killed")
    before = whole.store.names()
    reports = [whole.maintain(small_files=2, ahead_ms=n * HOUR_MS) for n in (1, 2)]
    assert all(sum(went(r, action) for r in reports) for action in ("compact", "snapshots", "held", "orphans"))
    after = whole.store.names()
    gone = before - after
    assert {f"{DATA}/dead-batch.parquet", f"{DATA}/.0123456789abcdef0123456789abcdef.tmp"} < gone
    assert {f"{DATA}/README.txt"} < after
    assert reports[-1].after.warehouse_files == len(after)
    assert whole.rig.published() == expected
    rows = whole.tables.batches()
    assert all(b.identity_balances for b in rows)
    assert not (whole.folder / "warehouse").exists()


def test_what_another_table_of_the_catalog_names_in_the_store_stays(whole: Whole, tmp_path: Path) -> None:
    head = whole.tables.commit(None, first_head(), [stage(tmp_path / "work", "f1", [published_row("a")])])
    first = whole.tables.waveforms()
    assert first is not None
    catalog = open_catalog(whole.deployment.catalog_settings())
    catalog.create_namespace("backup")
    catalog.register_table("backup.of_monday", first.metadata_location)
    first.delete("waveform_id == 'a'")
    whole.tables.commit(head, head.next(), [])
    before = whole.store.names()
    report = whole.maintain("snapshots", "orphans", ahead_ms=HOUR_MS)
    assert any("only other tables of the catalog name stay" in k for a in report.actions for k in a.kept)
    assert f"{DATA}/f1.parquet" in before & whole.store.names()
    assert catalog.load_table("backup.of_monday").scan().to_arrow()["waveform_id"].to_pylist() == ["a"]


@pytest.mark.parametrize("fault", [Fault.BUSY, Fault.LOST, Fault.TWICE])
def test_writes_that_are_refused_lost_or_done_twice_publish_everything_once(whole: Whole, fault: Fault) -> None:
    sent = recordings(3)
    whole.send(cut(sent))
    met = Counter[tuple[str, str]]()

    def strike(method: str, path: str) -> Fault | None:
        met[method, path] += 1
        return fault if method in WRITES and "/waveforms/" in path and met[method, path] == 1 else None

    whole.store.fault = strike
    while not whole.tables.batches(since=2):
        try:
            whole.batch()
        except (Transient, StateUnknown):
            assert sum(met.values()) < 1000, "no batch comes through"
    assert sum(method == "PUT" for method, _ in met) > 10
    assert whole.rig.published() == {r.waveform_id: bytes(r.samples) for r in sent}


def test_what_a_listing_does_not_show_yet_lets_no_file_go(whole: Whole) -> None:
    whole.send(cut(recordings(2)))
    whole.batch()
    live = next(name for name in whole.store.names(DATA))
    whole.put(f"{DATA}/dead-batch.parquet", b"x")
    before = whole.store.names()
    whole.store.unlisted = live.rpartition("/")[2]
    with pytest.raises(WavestitchError, match=r"not found in s3://.*data and s3://.*metadata.*no file of stream"):
        whole.maintain("orphans", ahead_ms=2 * HOUR_MS)
    whole.store.unlisted = ""
    assert whole.store.names() == before
    assert went(whole.maintain("orphans", ahead_ms=2 * HOUR_MS), "orphans") >= 1
    assert live in whole.store.names()


def test_other_bytes_under_the_name_of_a_staged_file_are_not_published(whole: Whole, tmp_path: Path) -> None:
    whole.tables.commit(None, first_head(), [])
    staged = stage(tmp_path / "work", "f1", [published_row("a")])
    whole.put(f"{DATA}/f1.parquet", b"x" * staged.bytes)
    head = whole.tables.head()
    assert head is not None
    with pytest.raises(Altered, match=r"f1\.parquet has .* were staged: move it away"):
        whole.tables.commit(head, head.next(), [staged])
    assert whole.tables.head() == head


def test_what_arrives_changed_gets_no_name_that_counts(whole: Whole, tmp_path: Path) -> None:
    whole.tables.commit(None, first_head(), [])
    staged = stage(tmp_path / "work", "f1", [published_row("a")])
    Path(staged.path).write_bytes(Path(staged.path).read_bytes()[:-1] + b"?")  # after it was proven
    head = whole.tables.head()
    assert head is not None
    with pytest.raises(Altered, match=r"were staged"):
        whole.tables.commit(head, head.next(), [staged])
    assert whole.tables.head() == head
    assert whole.store.names(DATA) == set()


def test_a_store_that_refuses_the_login_is_said_in_words_without_it(whole: Whole) -> None:
    whole.store.fault = lambda _method, _path: Fault.DENIED
    whole.send(cut(recordings(1)))
    with pytest.raises(BadInput) as refused:
        whole.batch()
    assert "ACCESS_DENIED" in refused.value.message
    assert "hunter" not in repr(refused.value) + str(refused.value.__cause__)


def test_without_a_region_nobody_is_asked(tmp_path: Path, server: ObjectStore) -> None:
    said = "".join(
        line for line in server.settings(tmp_path / "keys").splitlines(keepends=True) if "region" not in line
    )
    rig = make_landed_deployment(tmp_path, stream_yaml="", partitions=1, warehouse=said)
    with pytest.raises(BadInput, match=r'does not say its "s3\.region"'):
        rig.deployment.tables(STREAM)


def test_files_that_are_not_reached_by_pyarrow_are_refused_in_words(tmp_path: Path, server: ObjectStore) -> None:
    said = f'{server.settings(tmp_path / "keys")}"py-io-impl" = "pyiceberg.io.fsspec.FsspecFileIO"\n'
    rig = make_landed_deployment(tmp_path, stream_yaml="", partitions=1, warehouse=said)
    with pytest.raises(BadInput, match=r"FsspecFileIO; .* reached by pyarrow alone: take py-io-impl out"):
        rig.deployment.tables(STREAM).stored()[0].files.listed()
