"""What the client hands out, and a reader that dies or fails in the middle of columns."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from confluent_kafka import Message

from consumers import pending_rows, record_sink
from consumers.landing import LandingWriter
from consumers.range_scan import _ClientEvents, _hand_out
from consumers.raw_message import MOST_HEADERS
from consumers.record_sink import NeedsCare, RecordSink
from tests.builders.raw_batches import (
    FAR,
    WAVEFORMS,
    deliver,
    landed,
    side_by_side,
    waveform,
)
from tests.builders.records import Letter
from tests.faults.killed_batch import die_at_record
from wavestitch.contracts.chunk_proof import NO_PROOF
from wavestitch.contracts.holes import HoleFinder
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stop_rule import StopRule


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_rows, "BATCH_BYTES", 2000)
    monkeypatch.setattr(pending_rows, "BATCH_ROWS", 7)


def message(record_: Letter, offset: int, stamp: tuple[int, int]) -> Any:
    return Message(
        topic="t",
        partition=0,
        offset=offset,
        key=record_.key,
        value=record_.value,
        headers=list(record_.headers) or None,
        timestamp=stamp,
    )


def handed_out(messages: Sequence[Any]) -> tuple[Any, ...]:
    with TemporaryDirectory() as folder, LandingWriter(Path(folder), FAR) as writer:
        sink = RecordSink(writer, NO_PROOF, lambda _: None, careful=False, partition=Partition(0))
        rule, holes = StopRule(FAR, idle_seconds=9, now=0.0), HoleFinder(Offset(0))
        _hand_out(list(messages), rule, holes, _ClientEvents(Partition(0)), sink.land)
        return (writer.finish([]), holes.close(Offset(len(messages))), rule.reached)


def test_the_client_and_raw_batches_give_the_same_file() -> None:
    for some in WAVEFORMS:
        by_client = handed_out([message(r, n, (1, 1000 + n)) for n, r in enumerate(some)])
        assert landed(side_by_side(some), together=True)[0] == by_client[0]


@pytest.mark.parametrize("at", [0, 13])
def test_a_record_of_too_many_headers_needs_care(at: int) -> None:
    records = waveform("w", 20)
    records[at] = records[at]._replace(headers=(*records[at].headers, *((f"h{n}", b"") for n in range(MOST_HEADERS))))
    with pytest.raises(NeedsCare, match=f"a record without headers at offset {at}, or with too many"):
        handed_out([message(r, n, (1, 1)) for n, r in enumerate(records)])


def test_a_record_without_headers_needs_care() -> None:
    found = [message(r, n, (1, 1)) for n, r in enumerate(waveform("w", 20))]
    found[13] = message(Letter(b"w", (), b"1234"), 13, (1, 1))
    with pytest.raises(NeedsCare, match="a record without headers at offset 13, or with too many"):
        handed_out(found)


class _Poisoned(Message):
    """As the client's of a header whose name is not UTF-8: it raises once, and returns then what must kill."""

    asked = 0

    def headers(self) -> Any:
        type(self).asked += 1
        assert self.asked == 1, "asked again, the client returns a list with a null pointer"
        raise SystemError("returned a result with an exception set") from UnicodeDecodeError("utf-8", b"\xff", 0, 1, "")


def test_a_message_whose_headers_cannot_be_read_is_asked_for_them_once() -> None:
    found = [message(r, n, (1, 1)) for n, r in enumerate(waveform("w", 20))]
    found[13] = _Poisoned(topic="t", partition=0, offset=13, key=b"w", value=b"1234", timestamp=(1, 1))
    with pytest.raises(NeedsCare, match="a header's name that is not UTF-8 at offset 13"):
        handed_out(found)
    assert _Poisoned.asked == 1


def land_and_die(folder: Path, nth: int, told: Connection) -> None:
    """In a process of its own: die at a record in the middle of columns; `told` what was landed before."""
    die_at_record(nth, lambda: os.kill(os.getpid(), signal.SIGKILL))
    add_run = LandingWriter.add_run

    def told_run(self: LandingWriter, offsets: Any, times: Any, found: Any, values: Any) -> None:
        add_run(self, offsets, times, found, values)
        told.send((offsets[0], len(values)))

    LandingWriter.add_run = told_run  # type: ignore[method-assign, assignment]
    with LandingWriter(folder, FAR) as writer:
        land_forty(writer)


def land_forty(writer: LandingWriter) -> Any:
    sink = RecordSink(
        writer, NO_PROOF, lambda _: None, careful=True, partition=Partition(0), on_stored_run=lambda *_: True
    )
    deliver(side_by_side(waveform("w", 40)), FAR, sink, together=True)
    return writer.finish([])


@pytest.mark.parametrize("nth", [17, 39])
@pytest.mark.usefixtures("small_batches")
def test_a_reader_that_is_killed_in_the_middle_of_columns_leaves_nothing_that_counts(tmp_path: Path, nth: int) -> None:
    here, there = Pipe(duplex=False)
    child = get_context("fork").Process(target=land_and_die, args=(tmp_path / "killed", nth, there))
    (tmp_path / "killed").mkdir()
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    assert here.poll(), "it died before anything was landed in columns"
    assert here.recv() == (0, nth)
    left = {p.name for p in (tmp_path / "killed").iterdir()}
    assert not [name for name in left if name.endswith(".arrow")], f"a file that looks whole: {left}"
    (tmp_path / "whole").mkdir()
    made = []
    for folder in ("killed", "whole"):
        with LandingWriter(tmp_path / folder, FAR) as writer:
            made.append(land_forty(writer))
    assert made[0] == made[1], "read again beside what the killed one left, it is the same"


def test_what_bytes_bring_about_in_columns_is_looked_at_one_by_one_and_a_fault_of_ours_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = side_by_side(waveform("w", 40))
    alone = landed(found, together=False)

    def fails_with(error: Exception) -> None:
        def fail(*_: Any) -> None:
            raise error

        monkeypatch.setattr(record_sink, "parse_chunks", fail)

    fails_with(RecursionError("deeper than anybody thought"))
    assert landed(found, together=True) == alone
    fails_with(AttributeError("no such column"))
    with pytest.raises(AttributeError):
        landed(found, together=True)
{"file": "tests/unit/test_redaction.py", "digest": "2a85335a79b6728f", "seconds": 0.85, "functions": {"spark_apps/submit.py": ["spark_conf"], "wavestitch/batch/deployment.py": ["Deployment.__post_init__", "Deployment.spark_conf", "leave_no_core_file"], "wavestitch/contracts/redaction.py": ["_as_read", "_named", "_secret_in_address", "_secret_in_words", "_shown_option", "_words", "is_reference", "is_secret", "parameters", "secret_inside", "shown", "shown_address", "shown_section", "spark_redaction"], "wavestitch/contracts/warehouse.py": ["_parts", "plain_warehouse"], "wavestitch/tables/access/own_settings.py": ["only_own_settings"]}}
{"file": "tests/unit/test_results_told.py", "digest": "5e92aa5a8b253570", "seconds": 0.1, "functions": {"wavestitch/batch/results_told.py": ["_counted", "_planned", "_published", "_validated", "said_of_result"]}}
{"file": "tests/unit/test_rewind_markdown.py", "digest": "901267791f79913b", "seconds": 0.06, "functions": {"wavestitch/contracts/harmless.py": ["for_markdown", "harmless", "is_plain"], "wavestitch/contracts/offset_range.py": ["OffsetRange.__str__", "OffsetRange.size"], "wavestitch/contracts/rewind_preview.py": ["PartitionPreview.cells", "RewindPreview.preview_id", "RewindPreview.reads_again", "_time", "_until", "length"], "wavestitch/contracts/versioned.py": ["Versioned._adapter", "Versioned._dump", "Versioned.content", "Versioned.line"]}}
{"file": "tests/unit/test_row_check.py", "digest": "82a783c9a9ac3d0e", "seconds": 0.9, "functions": {"consumers/arrow_columns.py": ["_whole_column", "ends_to_offsets", "to_column"], "consumers/pending_rows.py": ["PendingRows.__len__", "PendingRows._add_row", "PendingRows._build", "PendingRows.add_chunk", "PendingRows.clear", "PendingRows.to_batch"], "wavestitch/contracts/assembly.py": ["Assembly.newest_ms", "ChunkFacts.coordinate", "ChunkFacts.identity", "ChunkFacts.key", "Said.__init__", "Said.learn", "_conflict", "_from_start", "_judge", "_lessons", "_missing", "_one_of_each", "assemble_waveform"], "wavestitch/contracts/belief.py": ["Belief.__init__", "Belief.believes", "Belief.why_not"], "wavestitch/contracts/chunk_header.py": ["_parse_usual", "_waveform_id", "before_digest", "claims_with", "crc_of_id", "parse_chunk", "shared_claims"], "wavestitch/contracts/chunk_metadata.py": ["Metadata.end_time_ns", "Metadata.sample_bytes", "_each_once", "_interpret", "_number", "_parse", "_read", "_remember", "_text", "parse_metadata"], "wavestitch/contracts/chunk_proof.py": ["ChunkProof.header", "meets"], "wavestitch/contracts/chunk_table.py": ["ChunkTable.__len__", "ChunkTable.facts", "ChunkTable.is_in_order", "ChunkTable.of", "ChunkTable.stored_bytes", "ChunkTable.valid", "_filled", "_numbered", "_spelled", "are_among"], "wavestitch/contracts/copies.py": ["say_no_more"], "wavestitch/contracts/decided.py": ["Decision.counts", "Decision.reasons", "Fates.__getitem__", "Fates.__init__", "Fates.__iter__", "Fates.__len__", "Fates._fates", "Fates._merged", "Fates.by_partition", "Fates.counts", "Fates.order", "Fates.update", "_as_repr", "_bytes_of", "_hex", "_line", "_order", "_plain_lines", "_text", "holds_in_order", "seal_decision"], "wavestitch/contracts/decision.py": ["_believed", "_blocked", "_by_id", "_held_by_id", "_owner", "_taken_up", "check_balance", "decide", "decide_beside"], "wavestitch/contracts/errors.py": ["WavestitchError.__init__"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"], "wavestitch/contracts/held.py": ["HeldChunk.counted_as", "HeldChunk.key", "PublishedWaveform.has", "bare_keys", "is_released", "open_deadlines", "pieces_of"], "wavestitch/contracts/held_mark.py": ["held_bytes"], "wavestitch/contracts/id_partitions.py": ["IdBinding.__init__", "IdBinding.of"], "wavestitch/contracts/metadata_columns.py": ["MetadataColumns.of_each", "MetadataColumns.taken", "read_metadata", "read_texts"], "wavestitch/contracts/next_head.py": ["next_head"], "wavestitch/contracts/pending_decision.py": ["PendingDecision.__init__", "PendingDecision._assembled", "PendingDecision._beside_held", "PendingDecision._counted_as", "PendingDecision._held_after", "PendingDecision._judge", "PendingDecision._keep_open", "PendingDecision._lacks_bytes", "PendingDecision._settle", "PendingDecision._waits", "PendingDecision.assemble", "PendingDecision.closed", "PendingDecision.is_left", "PendingDecision.waiting", "_verdict", "blocked_by"], "wavestitch/contracts/plain_waveforms.py": ["PlainWaveforms.__len__", "PlainWaveforms.ids", "PlainWaveforms.is_plain", "PlainWaveforms.others", "PlainWaveforms.without", "_Facts.of", "_good", "_in_order", "_starts", "_texts", "_whole", "find_plain", "no_plain"], "wavestitch/contracts/plan.py": ["Plan.accepts", "Plan.expires", "Plan.held_choice", "Plan.holds", "Plan.moves_positions", "Plan.promotion", "Plan.sealed", "PlanKind.holds", "_as_first_said"], "wavestitch/contracts/position.py": ["Head._still_at_gate", "Head.as_of", "Head.next", "_offsets", "advance_watermark"], "wavestitch/contracts/quantities.py": ["after", "apart", "before", "epoch_ms", "milliseconds"], "wavestitch/contracts/row_check.py": ["StagedRows.of", "StagedRows.row", "_check_plain", "_check_rows", "_chunks_of", "_other_chunks", "_other_pieces", "_piece", "_places_of", "_ranges", "_same_digests", "check_rows"], "wavestitch/contracts/rows.py": ["texts_once"], "wavestitch/contracts/tombstones.py": ["Tombstones.__init__", "Tombstones.cover"], "wavestitch/contracts/versioned.py": ["Versioned._dump", "Versioned.content"]}}
{"file": "tests/unit/test_row_proof.py", "digest": "d1dca29e909dd59e", "seconds": 0.3, "functions": {"wavestitch/contracts/chunk_header.py": ["_begun_digest", "piece_digest"], "wavestitch/contracts/chunk_metadata.py": ["Metadata.end_time_ns", "_each_once", "_interpret", "_number", "_parse", "_read", "_remember", "_text", "parse_metadata", "show"], "wavestitch/contracts/row_proof.py": ["<lambda>", "_measured_otherwise", "_pieces_otherwise", "row_problem"], "wavestitch/contracts/sample_metrics.py": ["MetricColumns.put", "MetricColumns.unmeasured", "_reduce", "measure_samples", "measure_waveform"], "wavestitch/contracts/sample_types.py": ["runs_of_formats"]}}
{"file": "tests/unit/test_run_story.py", "digest": "e5b7f65f3be5de0e", "seconds": 1.54, "functions": {"wavestitch/contracts/harmless.py": ["harmless", "is_plain", "named"], "wavestitch/contracts/plan_id.py": ["is_plan_id"], "wavestitch/contracts/stream.py": ["ingest_dag_id", "is_stream_name", "name_in_airflow", "rewind_dag_id"]}}
{"file": "tests/unit/test_sample_types.py", "digest": "266b46c49928b219", "seconds": 28.25, "functions": {"wavestitch/contracts/sample_kinds.py": ["promoted"], "wavestitch/contracts/sample_types.py": ["_exact", "as_sent", "as_type", "fits_always", "list_values", "misfit", "samples_list", "sent_bytes", "type_of_list", "values_of"]}}
{"file": "tests/unit/test_scale.py", "digest": "c2c2026c1c9789ab", "seconds": 1.15, "functions": {}}
