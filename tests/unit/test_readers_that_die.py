"""Readers that end for want of memory, at their own bound or by the kernel: read again carefully, once (I5)."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from consumers import unit_processes
from consumers.read_job import UnitRead, word_to_line
from consumers.unit_reader import read_units
from tests.builders.plans import make_plan
from wavestitch.contracts.chunk_proof import NO_PROOF
from wavestitch.contracts.errors import Transient
from wavestitch.contracts.receipt import Receipt
from wavestitch.kafka.client_settings import KafkaSettings

CHILD = """
import json, os, sys
job = json.loads(sys.stdin.readline())
careful = job["careful"]
if {dies}:
    os.kill(os.getpid(), {signal})
print({word!r}, flush=True)
sys.stdin.read()
"""
PLAN = make_plan()


def read(monkeypatch: pytest.MonkeyPatch, folder: Path, *, dies: str, by: int) -> list[Receipt]:
    word = word_to_line(UnitRead(Receipt(PLAN.plan_id, 0, [], 0.0).to_json()))
    program = CHILD.format(dies=dies, signal=int(by), word=word)
    monkeypatch.setattr(unit_processes, "_ARGV", (sys.executable, "-c", program))
    return read_units(plan=PLAN, kafka=KafkaSettings("127.0.0.1:1"), folder=folder, units=[0], proof=NO_PROOF)


@pytest.mark.parametrize("by", [signal.SIGABRT, signal.SIGKILL], ids=["its-own-bound", "the-kernel"])
def test_a_reader_that_ends_for_want_of_memory_is_followed_by_a_careful_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, by: int
) -> None:
    assert [r.unit for r in read(monkeypatch, tmp_path, dies="not careful", by=by)] == [0]


@pytest.mark.parametrize("by", [signal.SIGABRT, signal.SIGKILL], ids=["its-own-bound", "the-kernel"])
def test_a_careful_reader_without_room_names_commands_that_lead_past(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, by: int
) -> None:
    with pytest.raises(Transient, match=rf"ended by signal {int(by)} although it read carefully") as ended:
        read(monkeypatch, tmp_path, dies="True", by=by)
    name, skipped = PLAN.stream.name, "PARTITION:START-OFFSET"
    assert f"`wavestitch run {name} --partitions PARTITION --until PARTITION:OFFSET`" in ended.value.message
    assert f"`wavestitch rewind {name} --to PARTITION:OFFSET --accept-skip {skipped} --apply`" in ended.value.message


def test_a_reader_that_is_ended_otherwise_may_be_tried_again_as_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(Transient, match="was killed by signal 15"):
        read(monkeypatch, tmp_path, dies="not careful", by=signal.SIGTERM)
