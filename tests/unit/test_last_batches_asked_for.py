"""The record batches in front of many positions: how much is asked of brokers for them, and how long is waited.

The wire is of the test, and as slow as it says; what a broker sends follows KIP-74: to the partition that is named
first one batch at least, to the others whole batches as far as their limits and the answer's go.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from wavestitch.contracts.errors import Transient
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.kafka import raw_log
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.kafka_python import DefaultRecordBase
from wavestitch.kafka.raw_log import RawLog


class Wire:
    """One broker, and the clock of whoever waits for it. `size`: of each batch; `behind`: so many there are from the
    one on that is wanted. `rate`: bytes a second."""

    def __init__(self, size: int, rate: float) -> None:
        self.size, self.rate = size, rate
        self.behind, self.now, self.sent = 20, 0.0, 0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def ask(self, request: Any, *, deadline: float) -> Any:
        left = request.max_bytes
        parts: list[Any] = []
        for p in request.topics[0].partitions:
            count = max(0, min(p.partition_max_bytes, left)) // self.size or (not parts)
            records = b"".join(self._batch(p.fetch_offset + n) for n in range(min(count, self.behind)))
            left -= len(records)
            parts.append(SimpleNamespace(partition_index=p.partition, error_code=0, records=records))
        sent = request.max_bytes - left
        self.sent += sent
        self.now += 0.002 + sent / self.rate
        return SimpleNamespace(
            error_code=0, responses=[SimpleNamespace(topic="waves", partitions=parts)], throttle_time_ms=0
        )

    def told(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        pass

    def _batch(self, base: int) -> bytes:
        head = DefaultRecordBase.HEADER_STRUCT
        length = self.size - DefaultRecordBase.AFTER_LEN_OFFSET
        return head.pack(base, length, 3, 2, 0, 0, 0, 1, 2, -1, -1, -1, 1) + bytes(self.size - head.size)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Any:
    def ask(wire: Wire, partitions: int, *, deadline: float = 20.0, about: str = "batches_at") -> dict[Partition, Any]:
        monkeypatch.setattr(raw_log, "time", wire)
        log = RawLog(KafkaSettings("memory:1"), "waves", deadline=deadline)
        monkeypatch.setattr(log, "_leader", lambda *_: wire)
        return getattr(log, about)({Partition(p): Offset(7) for p in range(partitions)})  # type: ignore[no-any-return]

    return ask


@pytest.mark.parametrize("size", [200, 16 << 10, (16 << 10) + 1, 40_000, 140_000, (1 << 20) + 12])
def test_no_more_than_twice_of_what_is_wanted_is_sent_or_what_is_asked_for_first(asked: Any, size: int) -> None:
    wire = Wire(size, rate=1e9)
    found = asked(wire, 30)
    assert len({batch.digest for batch in found.values()}) == 1
    assert all(batch is not None for batch in found.values())
    assert wire.sent <= 30 * max(2 * size, 16 << 10)


def test_a_record_time_is_the_newest_of_its_batch(asked: Any) -> None:
    assert asked(Wire(40_000, rate=1e9), 3, about="times_at") == {0: 2, 1: 2, 2: 2}


def test_a_slow_wire_is_waited_for_as_long_as_batches_come(asked: Any) -> None:
    """The whole takes longer than the deadline; the next one never does."""
    wire = Wire((1 << 20) + 12, rate=2e6)
    assert len(asked(wire, 30, deadline=5.0)) == 30
    assert wire.now > 10


def test_where_nothing_comes_it_ends_at_the_deadline(asked: Any) -> None:
    wire = Wire((1 << 20) + 12, rate=1e9)
    wire.behind = 0
    with pytest.raises(Transient, match="partition 0: no record batch came from offset 7 within 5 s"):
        asked(wire, 3, deadline=5.0)
    assert wire.now < 6
{"file": "tests/unit/test_lines_of_a_decision.py", "digest": "3a28b3b176c33248", "seconds": 0.08, "functions": {"wavestitch/contracts/decided.py": ["_as_repr", "_bytes_of"]}}
{"file": "tests/unit/test_login_in_the_clear.py", "digest": "dd77562e3e7c44db", "seconds": 0.14, "functions": {"wavestitch/batch/deployment.py": ["Deployment.__post_init__", "Deployment.catalog_settings"], "wavestitch/contracts/errors.py": ["WavestitchError.__init__"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"], "wavestitch/contracts/redaction.py": ["_as_read", "_secret_in_address", "_secret_in_words", "is_reference", "is_secret", "parameters", "secret_inside", "shown", "shown_address"], "wavestitch/contracts/warehouse.py": ["_parts", "plain_warehouse"], "wavestitch/contracts/web_address.py": ["is_here"], "wavestitch/tables/access/catalog_errors.py": ["meaning_of"], "wavestitch/tables/access/login_in_the_clear.py": ["Servers.of", "_may_log_in", "_server", "refuse_login_in_the_clear"], "wavestitch/tables/access/ordered_times.py": ["keep_times_in_order"], "wavestitch/tables/access/own_settings.py": ["be_guest"], "wavestitch/tables/access/reading.py": ["reading"], "wavestitch/tables/access/shared_history.py": ["check_version", "share_history"], "wavestitch/tables/access/unsaid.py": ["_forms", "_parts", "leave_unsaid"], "wavestitch/tables/catalog.py": ["_kind", "open_catalog"]}}
{"file": "tests/unit/test_login_token.py", "digest": "734efb6f58a0e528", "seconds": 0.14, "functions": {"wavestitch/contracts/errors.py": ["WavestitchError.__init__"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"]}}
{"file": "tests/unit/test_looks.py", "digest": "628e6eb061f2569b", "seconds": 7.86, "functions": {"wavestitch/contracts/errors.py": ["WavestitchError.__init__"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"]}}
{"file": "tests/unit/test_looks_in_a_server.py", "digest": "eef029c972f6d844", "seconds": 24.12, "functions": {"consumers/log_view.py": ["KafkaLog.__init__", "KafkaLog.topic"], "wavestitch/batch/brief_facts.py": ["BriefFacts", "BriefFacts.__init__", "BriefFacts._behind", "BriefFacts.of", "held_by"], "wavestitch/batch/deployment.py": ["Deployment.__post_init__", "Deployment.catalog_settings", "Deployment.history", "Deployment.kafka", "Deployment.log", "Deployment.stream", "Deployment.tables", "leave_no_core_file", "plain_name"], "wavestitch/batch/headroom.py": ["measure_room"], "wavestitch/batch/held_page.py": ["HeldList", "HeldOne"], "wavestitch/batch/held_request.py": ["<genexpr>"], "wavestitch/batch/history.py": ["_row_of", "whole_history"], "wavestitch/batch/kept_told.py": ["_kept", "_of_stream", "kept_told"], "wavestitch/batch/lag_trigger.py": ["Start"], "wavestitch/batch/stream_facts.py": ["PartitionFacts.backlog", "StreamFacts.backlog", "_room", "see_ends"], "wavestitch/batch/survey.py": ["survey"], "wavestitch/batch/watch.py": ["Watched"], "wavestitch/contracts/batch_row.py": ["describe_head"], "wavestitch/contracts/completeness.py": ["Kind", "Lane", "Span", "Stretch"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"], "wavestitch/contracts/partial_waveform.py": ["Gap", "PartialWaveform", "PlacedChunk", "_Lengths"], "wavestitch/contracts/plain_yaml.py": ["_PlainLoader.compose_node", "_PlainLoader.construct_mapping", "_PlainLoader.construct_object", "_PlainLoader.construct_scalar", "read_plain_yaml"], "wavestitch/contracts/position.py": ["Head.to_properties", "_impossible", "_plain", "head_from_properties"], "wavestitch/contracts/quantities.py": ["after", "epoch_ms"], "wavestitch/contracts/redaction.py": ["_as_read", "_secret_in_address", "_secret_in_words", "is_reference", "is_secret", "parameters", "secret_inside"], "wavestitch/contracts/rows.py": ["published_schema"], "wavestitch/contracts/sample_types.py": ["samples_list"], "wavestitch/contracts/stream.py": ["Stream._a_key_where_one_is_used", "Stream._kafka_name", "Stream._plain_name", "Stream._started_in_one_way", "backfill_dag_id", "decide_dag_id", "ingest_dag_id", "is_stream_name", "name_in_airflow", "parse_stream", "promote_dag_id", "rewind_dag_id", "verify_dag_id"], "wavestitch/contracts/versioned.py": ["Versioned._adapter", "Versioned._current", "Versioned._dump", "Versioned.content", "Versioned.of", "_unsaid", "check_format"], "wavestitch/contracts/warehouse.py": ["_parts", "is_stored", "plain_warehouse"], "wavestitch/tables/access/at_work.py": ["is_ours", "our_file_io", "working_on"], "wavestitch/tables/access/durable_file_io.py": ["DurableFileIO.__init__", "DurableFileIO._check_kind", "DurableFileIO.new_input", "DurableFileIO.new_output", "_LocalFile.create", "_SyncedStream.__init__", "_SyncedStream.close", "_kind"], "wavestitch/tables/access/file_marks.py": ["local_path"], "wavestitch/tables/access/object_store.py": ["store_properties"], "wavestitch/tables/access/ordered_times.py": ["_not_before", "_updated", "keep_times_in_order", "later_than", "newest_time"], "wavestitch/tables/access/own_catalogs.py": ["OwnTable.location_provider", "_own_kind", "_said", "as_ours", "working_in"], "wavestitch/tables/access/own_code.py": ["_below_the_table", "_import_chosen", "listening", "only_own_code", "with_own_properties_alone"], "wavestitch/tables/access/own_settings.py": ["_asked", "_later", "be_guest", "only_own_settings"], "wavestitch/tables/access/reading.py": ["reading"], "wavestitch/tables/access/shared_history.py": ["<lambda>", "_Spelled.__init__", "_Spelled.model_dump_json", "_copy_containers", "_read_table", "_write_and_keep", "check_version", "share_history"], "wavestitch/tables/access/time_outs.py": ["_bounded_engine", "connect_args", "keeping"], "wavestitch/tables/access/unsaid.py": ["_forms", "_parts", "leave_unsaid"], "wavestitch/tables/catalog.py": ["_keep_commits", "_kind", "_with_busy_timeout", "open_catalog", "sql_address"], "wavestitch/tables/commit/one_commit.py": ["OneCommit.__init__", "OneCommit._stage", "OneCommit.commit_transaction", "OneCommit.table_metadata", "_Sent.__enter__", "_Sent.__exit__", "_Sent.__init__", "_Sent._note"], "wavestitch/tables/commit/own_columns.py": ["_first", "_ids", "_lost", "_name", "refuse_lost"], "wavestitch/tables/commit/own_files.py": ["own_files"], "wavestitch/tables/commit/own_partitions.py": ["refusing_partitions"], "wavestitch/tables/commit/own_place.py": ["OwnPlace.folder", "OwnPlace.of", "OwnPlace.refuse_other", "OwnPlace.remark", "OwnPlace.with_own_versions", "_same"], "wavestitch/tables/commit/own_properties.py": ["with_own_properties"], "wavestitch/tables/commit/own_versions.py": ["_delete", "_note", "_ours", "keep_own_versions"], "wavestitch/tables/commit/samples_column.py": ["sample_type_of"], "wavestitch/tables/commit/stored_table.py": ["StoredTable.__init__", "StoredTable._load", "StoredTable.commit_files", "StoredTable.ensure", "StoredTable.files", "StoredTable.load", "StoredTable.load_to_change", "_without_statistics"], "wavestitch/tables/commit/table_layout.py": ["_fields", "_iceberg_type", "_layout", "_metrics", "iceberg_schema", "waveforms_layout"], "wavestitch/tables/history/heads.py": ["_head", "_snapshots", "_version", "heads_of", "newest_head", "walk_heads"], "wavestitch/tables/lookup/id_index.py": ["IdIndex.__init__"], "wavestitch/tables/lookup/paged_rows.py": ["<genexpr>", "PageOfRows", "Place"], "wavestitch/tables/lookup/stored_row.py": ["<listcomp>", "StoredRow"], "wavestitch/tables/stream_tables.py": ["StreamTables.__init__", "StreamTables._as_committed", "StreamTables._placed", "StreamTables._table_at", "StreamTables.commit", "StreamTables.head", "StreamTables.heads", "StreamTables.shown_batches", "_identity"]}}
