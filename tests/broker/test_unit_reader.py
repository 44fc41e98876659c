"""Units of work read side by side, by processes of their own, which never outlive their parent (I1, I5)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from consumers.landed_file import read_index
from consumers.unit_processes import UnitProcesses
from consumers.unit_reader import read_units
from tests.broker.reading_rig import (
    Rig,
    delete_before,
    landed_rows,
    payloads,
    reread,
    wait_for,
)
from tests.object_store import object_store
from wavestitch.contracts.errors import BadInput, DataLost, Transient, WavestitchError
from wavestitch.contracts.plan import Plan
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.payload_store import PayloadStore


def test_units_are_read_side_by_side_and_progress_is_summed_up(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory(partitions=3)
    sender = rig.sender(topic, value_bytes=1000)
    sent = [v for p in range(3) for v in sender.send(500, partition=p)]
    plan = rig.plan(topic, [[(0, 0, 500)], [(1, 0, 200), (1, 200, 500)], [(2, 0, 500)]])
    told: list[tuple[int, int]] = []
    receipts = read_units(
        plan=plan, kafka=rig.kafka, folder=rig.folder, processes=2, progress=lambda r, b: told.append((r, b))
    )
    assert [r.unit for r in receipts] == [0, 1, 2]
    assert payloads(landed_rows(rig.folder, plan, receipts)) == sent
    assert told[-1] == (1500, 1_500_000)
    assert told == sorted(told)


def test_children_put_payload_into_a_store_and_the_rest_into_the_folder(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    sent = rig.sender(topic, value_bytes=1000).send(100)
    plan = rig.plan(topic, [[(0, 0, 100)]])
    with object_store() as store:
        (receipt,) = read_units(plan=plan, kafka=rig.kafka, folder=rig.folder, payload=store.payload_place)
        (name,) = (name.rpartition("/")[2] for name in store.names("payload"))
        payload = PayloadStore(store.payload_place).of(rig.folder)
        assert payload.fetch(name, 100_000) == b"".join(sent)
    (landed,) = receipt.slices
    assert read_index(rig.folder, landed).num_rows == 100
    assert sent[0] not in (rig.folder / str(landed.file)).read_bytes()


def test_a_small_batch_is_read_by_one_process_and_a_large_one_by_several(
    rig: Rig, topic_factory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topic_factory(partitions=2)
    for p in range(2):
        rig.sender(topic).send(10, partition=p)
    plan = rig.plan(topic, [[(0, 0, 10)], [(1, 0, 10)]])
    monkeypatch.chdir(tmp_path)
    for size, readers in ((100.0, 1), (1e9, 2)):
        with UnitProcesses() as children:
            read_units(plan=reread(plan, mean_record_bytes=size), kafka=rig.kafka, folder=rig.folder, children=children)
            assert len(readers_of(tmp_path)) == readers


def test_a_childs_error_is_raised_here_with_its_facts(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory(partitions=2)
    rig.sender(topic).send(10)
    rig.sender(topic).send(10, partition=1)
    plan = rig.plan(topic, [[(0, 0, 10)], [(1, 0, 10)]])
    delete_before(rig.bootstrap, topic, 4, partition=1)
    with pytest.raises(DataLost) as lost:
        read_units(plan=plan, kafka=rig.kafka, folder=rig.folder)
    assert lost.value.facts["offsets"] == [[0, 4]]
    assert lost.value.facts["partition"] == 1


def readers_of(folder: Path) -> list[int]:
    """Processes that read into this folder: told by the folder that they write in, which is theirs alone."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                argv = (entry / "cmdline").read_bytes().split(b"\0")
                if b"consumers.unit_process" in argv and str(folder) in os.readlink(entry / "cwd"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def endless(rig: Rig, topic: str) -> Plan:
    """Units that wait for an open transaction, for a minute."""
    hanging = rig.sender(topic, transactional=True)
    for p in range(2):
        if not p:
            hanging.begin()
        hanging.send(3, partition=p)
    rig.hanging = hanging  # type: ignore[attr-defined]  # kept alive, or the transaction ends
    return rig.plan(topic, [[(0, 0, 3)], [(1, 0, 3)]], idle_deadline=60)


def test_children_die_with_their_parent(rig: Rig, topic_factory: Any, tmp_path: Path) -> None:
    plan = endless(rig, topic_factory(partitions=2))
    (tmp_path / "plan.json").write_text(plan.to_json())
    program = f"""
        from pathlib import Path
        from wavestitch.kafka.client_settings import KafkaSettings
        from consumers.unit_reader import read_units
        from wavestitch.contracts.plan import plan_from_json
        plan = plan_from_json(Path("plan.json").read_text())
        read_units(plan=plan, kafka=KafkaSettings({rig.bootstrap!r}), folder=Path("landing"), processes=2)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], cwd=tmp_path) as parent:
        wait_for(lambda: len(readers_of(tmp_path)) == 2)
        parent.kill()
    wait_for(lambda: not readers_of(tmp_path), 20)


def test_a_child_that_is_killed_again_although_careful_is_a_transient_error_and_ends_the_others(
    rig: Rig, topic_factory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = endless(rig, topic_factory(partitions=2))
    monkeypatch.chdir(tmp_path)

    def kill_one() -> None:
        wait_for(lambda: len(readers_of(tmp_path)) == 2)
        first = set(readers_of(tmp_path))
        os.kill(min(first), signal.SIGKILL)
        wait_for(lambda: bool(set(readers_of(tmp_path)) - first))
        os.kill((set(readers_of(tmp_path)) - first).pop(), signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    with pytest.raises(Transient, match="was ended by signal 9 although it read carefully"):
        read_units(plan=plan, kafka=rig.kafka, folder=rig.folder, processes=2)
    killer.join()
    assert readers_of(tmp_path) == []


def test_children_wait_for_the_next_plan_and_those_that_died_meanwhile_are_replaced(
    rig: Rig, topic_factory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topic_factory(partitions=3)
    sent = [v for p in range(3) for v in rig.sender(topic).send(30, partition=p)]
    monkeypatch.chdir(tmp_path)

    def read(units: list[list[tuple[int, int, int]]]) -> list[bytes]:
        plan = rig.plan(topic, units)
        receipts = read_units(plan=plan, kafka=rig.kafka, folder=rig.folder, processes=2, children=children)
        return payloads(landed_rows(rig.folder, plan, receipts))

    with UnitProcesses() as children:
        assert read([[(0, 0, 30)], [(1, 0, 30)], [(2, 0, 30)]]) == sent
        first = set(readers_of(tmp_path))
        assert len(first) == 2
        assert read([[(0, 0, 10)], [(1, 5, 30)]]) == sent[:10] + sent[35:60]
        assert set(readers_of(tmp_path)) == first
        killed = first.pop()
        os.kill(killed, signal.SIGKILL)
        # Dead to its last thread, and still there to be waited for.
        os.waitid(os.P_PID, killed, os.WEXITED | os.WNOWAIT)
        assert read([[(0, 0, 30)], [(1, 0, 30)]]) == sent[:60]
        assert first < set(readers_of(tmp_path))
        delete_before(rig.bootstrap, topic, 4, partition=1)
        with pytest.raises(DataLost):
            read([[(0, 0, 30)], [(1, 0, 30)]])
        assert readers_of(tmp_path) == []
        assert read([[(2, 0, 30)]]) == sent[60:]
    assert readers_of(tmp_path) == []


def test_passwords_reach_a_child_neither_by_argument_nor_by_environment(
    rig: Rig, topic_factory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = endless(rig, topic_factory(partitions=2))
    monkeypatch.chdir(tmp_path)
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "ada"}
    kafka = KafkaSettings(rig.bootstrap, {**login, "sasl.password": "hush-1"})
    seen: list[bytes] = []

    def look() -> None:
        wait_for(lambda: len(readers_of(tmp_path)) == 2)
        for pid in readers_of(tmp_path):
            seen.append(Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes())

    looker = threading.Thread(target=look)
    looker.start()
    with pytest.raises(WavestitchError):  # this broker asks for no login, and knows none
        read_units(plan=plan, kafka=kafka, folder=rig.folder, processes=2)
    looker.join()
    assert len(seen) == 2
    assert not any(b"hush-1" in text for text in seen)


def test_a_plan_that_was_changed_is_refused_by_the_child(rig: Rig, topic_factory: Any) -> None:
    plan = reread(rig.plan(topic_factory(), [[(0, 0, 0)]]), nonce="other")
    object.__setattr__(plan, "generation", 7)
    with pytest.raises(BadInput, match="was changed after it was made"):
        read_units(plan=plan, kafka=rig.kafka, folder=rig.folder)
