"""Batches whose landed payload is in an object store: nothing lost, twice or altered, whatever becomes of requests and
processes. Index, receipts and tables are in folders. I1 to I3, I6."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from consumers import pending_rows
from consumers.landed_file import read_index
from tests.builders.landing import land_records
from tests.builders.ranges import span
from tests.builders.recordings import cut, recordings
from tests.builders.records import letter, metadata
from tests.deployment_rig import STREAM
from tests.domain.payload_rig import BATCH_BYTES, PIECE_BYTES, PLAN_ID, Whole, whole_in
from tests.hostile.landed_deployment import FakeDeployment, landed_edges
from tests.object_store import Fault, ObjectStore, object_store
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.results import Finished, Published, Read
from wavestitch.batch.steps import (
    step_commit_offsets,
    step_publish,
    step_read,
    step_reassemble,
    step_validate,
)
from wavestitch.contracts import payload_apart
from wavestitch.contracts.errors import Altered, BadInput, Transient
from wavestitch.payload_store import PayloadStore
from wavestitch.settings_sections import Payload


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with object_store() as found:
        yield found


@pytest.fixture(autouse=True)
def _small_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_rows, "BATCH_BYTES", BATCH_BYTES)
    monkeypatch.setattr(payload_apart, "PIECE_BYTES", PIECE_BYTES)


@pytest.fixture
def whole(tmp_path: Path, server: ObjectStore) -> Iterator[Whole]:
    with whole_in(tmp_path, server) as found:
        yield found


def go_on(edges: DeploymentEdges, plan_id: str, read: Read | Finished) -> Published | Finished:
    """From what was read to the commit."""
    reassembled = step_reassemble(edges, plan_id, read)
    return step_publish(edges, plan_id, reassembled, step_validate(edges, plan_id, reassembled))


def test_batches_and_what_is_held_come_through_with_payload_in_the_store_alone(whole: Whole) -> None:
    sent = recordings(4, samples=1500)
    chunks = cut(sent)
    late = chunks[1]
    whole.send([c for c in chunks[: len(chunks) // 2] if c is not late])
    plan_id = whole.plan()
    edges = landed_edges(whole.deployment)
    read = step_read(edges, plan_id)
    landed = sorted((whole.folder / "landing").rglob("slice-*.arrow"))
    assert len(landed) == 2
    assert len(whole.objects()) > 4
    on_disk = b"".join(path.read_bytes() for path in landed)
    assert not any(bytes(c.value) in on_disk for c in chunks), "payload lies in the folder, too"
    published = go_on(edges, plan_id, read)
    assert isinstance(published, Published)
    assert published.counts["carried_out"] == 2, "what waits for the late chunk is held, with its bytes"
    step_commit_offsets(edges, plan_id)
    assert whole.objects() == set()
    whole.send([late, *chunks[len(chunks) // 2 :]])
    whole.batch()
    assert whole.rig.published() == {r.waveform_id: bytes(r.samples) for r in sent}
    assert whole.objects() == set()
    assert all(b.identity_balances for b in whole.tables.batches())
    assert whole.store.in_parts == [], "an upload in parts leaves them behind where nobody lists them"
    written = [p for p in (whole.folder / "landing").rglob("*") if p.is_file()]
    assert not any(b"hunter" in p.read_bytes() for p in written), "the login is in the landing"


@pytest.mark.parametrize("fault", [Fault.BUSY, Fault.LOST, Fault.TWICE])
def test_requests_that_are_refused_lost_or_done_twice_publish_everything_once(whole: Whole, fault: Fault) -> None:
    sent = recordings(2, samples=1500)
    whole.send(cut(sent))
    met = Counter[tuple[str, str]]()

    def strike(method: str, path: str) -> Fault | None:
        met[method, path] += 1
        return fault if "/payload-" in path and met[method, path] == 1 else None

    whole.store.fault = strike
    whole.batch()
    assert sum(method == "PUT" for method, _ in met) > 3
    assert whole.rig.published() == {r.waveform_id: bytes(r.samples) for r in sent}
    assert whole.objects() == set()


def test_a_store_that_stays_busy_ends_the_step_with_a_sentence_and_the_plan_goes_on_later(whole: Whole) -> None:
    sent = recordings(2, samples=1500)
    whole.send(cut(sent))
    plan_id = whole.plan()
    asked = len(whole.store.asked)
    whole.store.fault = lambda method, path: Fault.BUSY if method == "PUT" and "/payload-" in path else None
    with pytest.raises(Transient, match=r"object store at s3://.* did not do .* 2 times \(PutObject: SLOW_DOWN\)"):
        whole.take_up(plan_id)
    tries = Counter(path for method, path in whole.store.asked[asked:] if method == "PUT")
    assert set(tries.values()) == {2}
    assert not list((whole.folder / "landing").rglob("slice-*")), "a landing file whose payload is not there has a name"
    whole.store.fault = lambda _method, _path: None
    whole.take_up(plan_id)
    assert whole.rig.published() == {r.waveform_id: bytes(r.samples) for r in sent}


def test_a_store_that_refuses_the_login_is_said_in_words_without_it(whole: Whole) -> None:
    whole.send(cut(recordings(1)))
    whole.store.fault = lambda _method, _path: Fault.DENIED
    with pytest.raises(
        BadInput, match=r"refuses PutObject at s3://.*\(ACCESS_DENIED\); give \[payload\.properties\]"
    ) as e:
        whole.batch()
    assert "hunter" not in repr(e.value) + str(e.value.__cause__)


def test_a_store_that_takes_the_connection_and_never_answers_is_not_waited_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        login = {"s3.access-key-id": "k", "s3.secret-access-key": "hunter2"}
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        said = {"s3.endpoint": endpoint, "s3.region": "us-east-1", **login}
        store = PayloadStore(payload_apart.PayloadPlace("s3://bucket/payload", said, 1.0, 1.0, 1))
        with pytest.raises(Transient, match=r"did not do what was asked, 1 times \(.*NETWORK_CONNECTION\)"):
            store.of(tmp_path / STREAM / PLAN_ID).fetch("payload-" + "0" * 32, 1)


@pytest.mark.parametrize("how", ["gone", "half", "other"])
@pytest.mark.parametrize("step", ["reassemble", "publish"])
def test_an_object_that_is_not_as_it_was_landed_is_refused_and_read_again(whole: Whole, how: str, step: str) -> None:
    """Of what is stitched, and of what is held."""
    sent = recordings(1, samples=1500)
    chunks = cut(sent)
    whole.send(chunks if step == "reassemble" else chunks[:-1])
    edges = landed_edges(whole.deployment)
    plan_id = whole.plan()
    read = step_read(edges, plan_id)
    name = min(whole.objects())
    with whole.store.files.open_input_stream(f"{whole.store.bucket}/{name}") as source:
        content = bytes(source.read())
    if how == "gone":
        whole.store.files.delete_file(f"{whole.store.bucket}/{name}")
    else:
        whole.put(name, content[: len(content) // 2] if how == "half" else bytes(len(content)))
    with pytest.raises(Altered, match=r"payload-.*(is gone|has other bytes).*run the batch's read step again"):
        go_on(edges, plan_id, read)
    assert whole.tables.head() is None or not whole.rig.published()
    done = whole.take_up(plan_id)
    assert done["counts"]["published" if step == "reassemble" else "carried_out"] == len(chunks) - (
        step != "reassemble"
    )


def test_other_bytes_of_a_second_attempt_are_never_mixed_with_the_first(tmp_path: Path, whole: Whole) -> None:
    folder = tmp_path / "landing" / STREAM / PLAN_ID
    store = whole.deployment.payload_store
    assert store is not None
    folder.mkdir(parents=True)

    def land(value: bytes) -> tuple[str, set[str]]:
        before = whole.objects()
        found = land_records(
            folder,
            span(0, 5, 6),
            [(5, 1, letter("w", 0, value, meta=metadata(1), count=None))],
            payload=store.of(folder),
        )
        return str(found.file), whole.objects() - before

    (first, made), (second, more) = land(b"a" * 900), land(b"b" * 900)
    assert first != second
    assert len(made) == len(more) == 1
    assert not made & more
    assert land(b"a" * 900) == (first, set()), "the same once more is what is there"


def test_the_index_is_the_same_wherever_the_payload_is(
    tmp_path: Path, whole: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    store = whole.deployment.payload_store
    assert store is not None
    records = [(n, 1000 + n, letter("w", n, bytes([n]) * 100_000, meta=metadata(1), count=None)) for n in range(100)]
    folders = [tmp_path / "landing" / STREAM / (name * 32) for name in "ab"]
    for folder in folders:
        folder.mkdir(parents=True)
    here, apart = (
        land_records(folder, span(0, 0, 100), records, payload=payload)
        for folder, payload in zip(folders, (None, store.of(folders[1])), strict=True)
    )
    assert replace(apart, file=None, file_bytes=0, digest="") == replace(here, file=None, file_bytes=0, digest="")
    assert read_index(folders[1], apart).equals(read_index(folders[0], here))
    here_bytes, apart_bytes = (
        (folder / str(landed.file)).stat().st_blocks * 512
        for folder, landed in zip(folders, (here, apart), strict=True)
    )
    assert here_bytes > 10_000_000
    assert apart_bytes < 200_000, "the hole takes room"


_KILLED = """
import sys
from pathlib import Path

from consumers import pending_rows
from tests.builders.landing import land_records
from tests.builders.ranges import span
from tests.builders.records import letter, metadata
from wavestitch.contracts import payload_apart
from wavestitch.payload_store import PayloadStore

pending_rows.BATCH_BYTES, payload_apart.PIECE_BYTES = 2500, 1000
folder, endpoint, place = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
login = {"s3.endpoint": endpoint, "s3.region": "us-east-1", "s3.access-key-id": "k", "s3.secret-access-key": "s"}
store = PayloadStore(payload_apart.PayloadPlace(place, login, 5.0, 5.0, 1))
records = ((n, 1000 + n, letter("w", n, bytes([n]) * 1000, meta=metadata(1), count=None)) for n in range(40))
land_records(folder, span(0, 0, 40), records, payload=store.of(folder))
"""


def test_a_reader_that_is_killed_in_the_middle_leaves_nothing_that_counts(whole: Whole, tmp_path: Path) -> None:
    folder = tmp_path / "landing" / STREAM / PLAN_ID
    folder.mkdir(parents=True)
    reader: list[subprocess.Popen[bytes]] = []
    put: list[str] = []

    def strike(method: str, path: str) -> Fault | None:
        if method == "PUT" and "/payload-" in path:
            put.append(path)
            if len(put) == 5:
                reader[0].send_signal(signal.SIGKILL)
                reader[0].wait()
        return None

    whole.store.fault = strike
    place = f"s3://{whole.store.bucket}/payload"
    argv = [sys.executable, "-c", textwrap.dedent(_KILLED), str(folder), whole.store.endpoint, place]
    reader.append(subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": os.getcwd()}))
    assert reader[0].wait() == -signal.SIGKILL
    assert len(put) < 20
    assert not list(folder.glob("slice-*"))
    whole.store.fault = lambda _method, _path: None
    left = whole.objects()
    assert left
    assert whole.store.in_parts == []
    store = whole.deployment.payload_store
    assert store is not None
    records = [(n, 1000 + n, letter("w", n, bytes([n]) * 1000, meta=metadata(1), count=None)) for n in range(40)]
    landed = land_records(folder, span(0, 0, 40), records, payload=store.of(folder))
    assert left < whole.objects(), "the next attempt does not go on with the same names"
    assert read_index(folder, landed).num_rows == 40


def test_payload_that_was_landed_in_another_way_is_found_or_refused_by_name(whole: Whole, tmp_path: Path) -> None:
    """The setting may change while a batch is under way: its files say themselves where their payload is."""
    sent = recordings(1, samples=1500)
    whole.send(cut(sent))
    plan_id = whole.plan()
    read = step_read(landed_edges(whole.deployment), plan_id)
    settings = whole.deployment.settings.model_copy(update={"payload": Payload()})
    folder_alone = FakeDeployment(settings, whole.deployment.memory)
    with pytest.raises(
        BadInput, match=r"is in an object store, and the settings name none; set `place` of \[payload\]"
    ):
        step_reassemble(landed_edges(folder_alone), plan_id, read)
    in_folder = step_read(landed_edges(folder_alone), plan_id)
    go_on(landed_edges(whole.deployment), plan_id, in_folder)
    assert whole.rig.published() == {r.waveform_id: bytes(r.samples) for r in sent}


def test_a_large_object_goes_by_one_request(whole: Whole, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    store = whole.deployment.payload_store
    assert isinstance(store, PayloadStore)
    batch = store.of(whole.folder / "landing" / STREAM / PLAN_ID)
    content = os.urandom(payload_apart.PIECE_BYTES)
    asked = len(whole.store.asked)
    name = payload_apart.name_payload(content)
    batch.put(name, content)
    assert [method for method, _ in whole.store.asked[asked:]] == ["PUT"]
    assert batch.fetch(name, len(content)) == content
    assert whole.store.in_parts == []


def test_who_only_looks_at_a_batch_needs_no_login(whole: Whole) -> None:
    whole.send(cut(recordings(1)))
    plan_id = whole.plan()
    (whole.folder / "keys" / "store-secret").unlink()
    looking = FakeDeployment(whole.deployment.settings, whole.deployment.memory)
    assert looking.folder(STREAM, plan_id).plan().plan_id == plan_id
    with pytest.raises(BadInput, match=r"store-secret: No such file"):
        looking.folder(STREAM, plan_id).drop_payload()
