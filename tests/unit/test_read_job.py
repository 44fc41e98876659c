"""What goes over the pipes between a batch and the processes that read for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from consumers import unit_processes
from consumers.read_job import (
    READ_JOBS,
    ReadJob,
    UnitFailed,
    UnitProgress,
    UnitRead,
    UnitWord,
    word_from_line,
    word_to_line,
)
from consumers.unit_processes import UnitProcesses
from tests.builders.plans import make_plan
from wavestitch.contracts.chunk_proof import NO_PROOF
from wavestitch.contracts.errors import BadInput, Refused, Transient
from wavestitch.contracts.payload_apart import PayloadPlace
from wavestitch.kafka.client_settings import KafkaSettings

STORE = PayloadPlace("s3://b/p", {"s3.secret-access-key": "env:S3"}, 1.0, 2.0, 3)
JOB = ReadJob("{}", 2, "/landing", 9, "kafka:9092", {"sasl.password": "s3cret"}, "file:/t", "c0ffee", STORE)
WORDS = [UnitProgress(1, 2, (1, 2, 3, 4)), UnitRead("{}"), UnitFailed(Refused("no", partitions=[1]).to_json())]


def test_a_job_arrives_as_it_was_given_and_is_never_shown_with_what_is_secret() -> None:
    line = READ_JOBS.line(JOB)
    assert "\n" not in line
    assert READ_JOBS.read(line) == JOB
    assert not any(secret in repr(JOB) for secret in ("s3cret", "c0ffee", "env:S3", "file:/t"))


@pytest.mark.parametrize("word", WORDS, ids=lambda word: type(word).__name__)
def test_a_word_arrives_as_it_was_said(word: UnitWord) -> None:
    line = word_to_line(word)
    assert "\n" not in line
    assert word_from_line(line.encode()) == word


@pytest.mark.parametrize("line", ["", "[]", '"UnitRead"', '{"word": "Told"}', '{"word": "UnitRead", "format": 1}'])
def test_what_no_reading_process_says_is_refused(line: str) -> None:
    with pytest.raises(BadInput):
        word_from_line(line)


@pytest.mark.parametrize(
    ("child", "error", "said"),
    [
        ("read job; printf '{\"word\"'; kill -9 $$", Transient, "although it read carefully"),
        ("read job; echo hello; exec sleep 60", BadInput, "it has no word for"),
    ],
)
def test_a_child_that_is_killed_amid_a_word_or_says_anything_else_ends_the_reading_by_name(
    child: str, error: type[Exception], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_processes, "_ARGV", ("sh", "-c", child))
    with UnitProcesses() as processes, pytest.raises(error, match=said):
        processes.read(
            make_plan(),
            [0],
            kafka=KafkaSettings("kafka:9092"),
            folder=tmp_path,
            proof=NO_PROOF,
            payload=None,
            at_once=1,
            on_progress=lambda *_: None,
        )
