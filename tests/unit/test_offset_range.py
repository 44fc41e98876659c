"""Cutting and packing never lose, repeat or invent an offset (I1)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.ranges import span
from wavestitch.contracts.offset_range import (
    OffsetRange,
    bound_ranges,
    cut_links,
    cut_slices,
    joined,
    pack_groups,
    pack_units,
    without,
)
from wavestitch.contracts.quantities import Partition


@st.composite
def backlogs(draw: st.DrawFn) -> list[OffsetRange]:
    sizes = draw(st.lists(st.integers(0, 5000), min_size=1, max_size=8))
    starts = [draw(st.integers(0, 10_000)) for _ in sizes]
    return [span(p, a, a + n) for p, (a, n) in enumerate(zip(starts, sizes, strict=True))]


def offsets(ranges: list[OffsetRange]) -> list[tuple[int, int]]:
    return sorted((r.partition, o) for r in ranges for o in range(r.start, r.end))


@given(backlogs(), st.integers(1, 20_000))
def test_a_bound_takes_the_beginning_of_each_range_and_never_more_than_allowed(
    backlog: list[OffsetRange], most: int
) -> None:
    bounded = bound_ranges(backlog, max_records=most)
    by_partition = {r.partition: r for r in backlog}
    assert sum(r.size for r in bounded) <= most
    assert all(r.size > 0 and r.start == by_partition[r.partition].start for r in bounded)
    if sum(r.size for r in backlog) <= most:
        assert bounded == [r for r in backlog if r.size]


@given(backlogs(), st.integers(1, 9), st.integers(1, 600))
def test_slices_and_units_cover_the_ranges_exactly_once(
    backlog: list[OffsetRange], workers: int, min_slice: int
) -> None:
    ranges = [r for r in backlog if r.size]
    slices = cut_slices(ranges, workers=workers, min_slice=min_slice)
    assert offsets(slices) == offsets(ranges)
    units = pack_units(slices, workers=workers, weight={})
    assert offsets([s for unit in units for s in unit]) == offsets(ranges)
    assert len(units) <= max(workers, 1)


def test_partitions_that_fill_the_workers_are_not_cut() -> None:
    ranges = [span(p, 0, 1000) for p in range(4)]
    assert cut_slices(ranges, workers=4, min_slice=1) == ranges


def test_one_partition_is_read_by_all_workers() -> None:
    assert len(cut_slices([span(0, 0, 4000)], workers=4, min_slice=10)) == 4


def test_a_small_backlog_leaves_its_share_to_the_others() -> None:
    bounded = bound_ranges([span(0, 0, 10), span(1, 0, 1000)], max_records=500)
    assert bounded == [span(0, 0, 10), span(1, 0, 490)]


RANGES = st.lists(
    st.builds(lambda p, a, n: OffsetRange(p, a, a + n), st.integers(0, 3), st.integers(0, 200), st.integers(0, 60)),
    max_size=8,
)


def each_of(ranges: Iterable[OffsetRange]) -> set[tuple[int, int]]:
    return {(r.partition, o) for r in ranges for o in range(r.start, r.end)}


@given(RANGES, RANGES)
def test_ranges_are_joined_and_taken_away_as_sets_of_offsets_are(
    some: list[OffsetRange], gone: list[OffsetRange]
) -> None:
    assert each_of(joined(some)) == each_of(some)
    assert len(each_of(some)) == sum(r.size for r in joined(some))
    assert each_of(without(some, gone)) == each_of(some) - each_of(gone)
    assert each_of(joined(some, gap=5)) >= each_of(some)


@given(RANGES, st.integers(1, 40))
def test_a_chain_covers_all_offsets_once_and_no_link_is_too_large(some: list[OffsetRange], most: int) -> None:
    links = cut_links(some, most=most)
    assert each_of(r for link in links for r in link) == each_of(some)
    assert sum(r.size for link in links for r in link) == len(each_of(some))
    assert all(0 < sum(r.size for r in link) <= most for link in links)
    assert len(links) == -(-len(each_of(some)) // most)


@given(st.lists(RANGES, max_size=6), st.integers(1, 80))
def test_what_belongs_together_is_in_one_part_whole(groups: list[list[OffsetRange]], most: int) -> None:
    parts = pack_groups(groups, most=most)
    for group in groups:
        assert not each_of(group) or any(each_of(group) <= each_of(part) for part in parts)
    largest = max([most, *(len(each_of(g)) for g in groups)])
    assert all(sum(r.size for r in part) <= largest for part in parts)


@pytest.mark.parametrize(
    ("some", "gap", "joined_up"),
    [
        ([span(0, 5, 9), span(0, 0, 5)], 0, [span(0, 0, 9)]),
        ([span(0, 0, 5), span(0, 6, 9)], 0, [span(0, 0, 5), span(0, 6, 9)]),
        ([span(0, 0, 5), span(0, 7, 9)], 2, [span(0, 0, 9)]),
        ([span(0, 0, 5), span(0, 7, 9)], 1, [span(0, 0, 5), span(0, 7, 9)]),
        ([span(0, 0, 5), span(1, 5, 9)], 3, [span(0, 0, 5), span(1, 5, 9)]),
        ([span(0, 0, 9), span(0, 2, 4)], 0, [span(0, 0, 9)]),
        ([span(0, 0, 0), span(0, 4, 5)], 9, [span(0, 4, 5)]),
    ],
)
def test_near_ranges_are_one(some: list[OffsetRange], gap: int, joined_up: list[OffsetRange]) -> None:
    assert joined(some, gap=gap) == joined_up


@pytest.mark.parametrize(
    ("some", "within", "left"),
    [
        (span(0, 2, 8), span(0, 4, 6), span(0, 4, 6)),
        (span(0, 2, 8), span(0, 0, 5), span(0, 2, 5)),
        (span(0, 2, 8), span(0, 5, 9), span(0, 5, 8)),
        (span(0, 2, 8), span(0, 8, 9), span(0, 8, 8)),
        (span(0, 2, 8), span(0, 0, 2), span(0, 2, 2)),
        (span(0, 2, 8), span(0, 0, 1), span(0, 1, 1)),
    ],
)
def test_a_range_is_cut_to_another(some: OffsetRange, within: OffsetRange, left: OffsetRange) -> None:
    assert some.cut(within) == left


@pytest.mark.parametrize(
    ("groups", "most", "parts"),
    [
        ([[span(0, 0, 3)], [span(0, 3, 5)]], 5, [[span(0, 0, 5)]]),
        ([[span(0, 0, 3)], [span(0, 3, 5)]], 4, [[span(0, 0, 3)], [span(0, 3, 5)]]),
        ([[span(0, 3, 5)], [span(0, 0, 3)]], 4, [[span(0, 0, 3)], [span(0, 3, 5)]]),
        ([[span(0, 0, 3)], [span(0, 2, 5)]], 5, [[span(0, 0, 5)]]),
        ([[span(0, 0, 9)], [span(0, 9, 10)]], 2, [[span(0, 0, 9)], [span(0, 9, 10)]]),
        ([[], [span(1, 0, 2)], []], 2, [[span(1, 0, 2)]]),
        ([[]], 2, []),
    ],
)
def test_as_many_groups_are_packed_together_as_may_be(
    groups: list[list[OffsetRange]], most: int, parts: list[list[OffsetRange]]
) -> None:
    assert pack_groups(groups, most=most) == parts


def test_each_link_takes_the_same_share_of_every_partition() -> None:
    links = cut_links([span(0, 0, 10), span(1, 5, 35)], most=8)
    assert links[:2] == [[span(0, 0, 2), span(1, 5, 11)], [span(0, 2, 4), span(1, 11, 17)]]
    assert cut_links([span(0, 0, 3), span(1, 0, 3)], most=1)[:2] == [[span(0, 0, 1)], [span(1, 0, 1)]]


def test_what_is_left_over_goes_to_the_larger_backlogs() -> None:
    backlog = [span(2, 0, 100), span(0, 0, 3), span(1, 0, 100)]
    assert bound_ranges(backlog, max_records=12) == [span(0, 0, 3), span(1, 0, 4), span(2, 0, 5)]
    assert bound_ranges(backlog, max_records=2) == [span(1, 0, 1), span(2, 0, 1)]


def test_a_slice_is_as_large_as_it_has_to_be_and_of_the_same_size_as_the_others() -> None:
    assert cut_slices([span(0, 10, 22)], workers=4, min_slice=3) == [span(0, 10 + 3 * i, 13 + 3 * i) for i in range(4)]
    assert cut_slices([span(0, 10, 22)], workers=4, min_slice=4) == [span(0, 10 + 4 * i, 14 + 4 * i) for i in range(3)]
    assert cut_slices([span(0, 0, 3)], workers=4, min_slice=0) == [span(0, i, i + 1) for i in range(3)]
    assert cut_slices([span(0, 0, 2)], workers=3, min_slice=4) == [span(0, 0, 2)]
    assert cut_slices([span(0, 0, 30), span(1, 0, 10)], workers=4, min_slice=0) == [
        *(span(0, 0, 10), span(0, 10, 20), span(0, 20, 30), span(1, 0, 10))
    ]


def test_units_are_of_about_the_same_weight() -> None:
    slices = [span(0, 0, 10), span(1, 0, 10), span(2, 0, 10)]
    assert sorted(pack_units(slices, workers=2, weight={Partition(0): 2.0})) == [
        (span(0, 0, 10),),
        (span(1, 0, 10), span(2, 0, 10)),
    ]
    uneven = [span(0, 0, 1), span(1, 0, 1), span(2, 0, 2)]
    assert sorted(pack_units(uneven, workers=2, weight={})) == [tuple(uneven[:2]), tuple(uneven[2:])]
    assert len(pack_units(slices, workers=9, weight={})) == 3
    assert pack_units([], workers=3, weight={}) == []
    assert pack_units(slices[::-1], workers=0, weight={}) == [tuple(slices)]
{"file": "tests/unit/test_old_run_logs.py", "digest": "8b0999a718e850a1", "seconds": 0.1, "functions": {}}
{"file": "tests/unit/test_pages.py", "digest": "7e7f64e22324908e", "seconds": 1.89, "functions": {"wavestitch/batch/brief_facts.py": ["held_by"], "wavestitch/batch/stream_facts.py": ["PartitionFacts.backlog", "StreamFacts.backlog"], "wavestitch/batch/watch.py": ["freshness_to_json", "room_to_json"], "wavestitch/contracts/batch_row.py": ["BatchRow.identity_balances", "_balances"], "wavestitch/contracts/freshness.py": ["_short", "_todo", "said_of_freshness", "said_of_waits", "say_freshness"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"], "wavestitch/contracts/headroom.py": ["Room.alarm", "Room.backlog", "Room.begun", "Room.behind_s", "Room.late", "Room.left_s", "Room.lost", "Room.remarks", "Room.shown", "Room.waiting", "Thresholds.colour", "_judge", "judge_room"], "wavestitch/contracts/headroom_told.py": ["_accept", "_left", "_said", "_urgency", "_where", "say_room"], "wavestitch/contracts/open_transaction.py": ["said_of_open"], "wavestitch/contracts/rewind_preview.py": ["length"], "wavestitch/contracts/stream.py": ["backfill_dag_id", "decide_dag_id", "ingest_dag_id", "is_stream_name", "name_in_airflow", "promote_dag_id", "rewind_dag_id", "verify_dag_id"]}}
{"file": "tests/unit/test_partial_waveform.py", "digest": "599463c190669af7", "seconds": 0.29, "functions": {"consumers/arrow_columns.py": ["_whole_column", "ends_to_offsets", "to_column"], "consumers/pending_rows.py": ["PendingRows.__init__", "PendingRows.__len__", "PendingRows._add_row", "PendingRows._build", "PendingRows.add_chunk", "PendingRows.clear", "PendingRows.to_batch"], "wavestitch/contracts/assembly.py": ["ChunkFacts.coordinate", "ChunkFacts.identity", "ChunkFacts.key"], "wavestitch/contracts/chunk_header.py": ["_begun_digest", "_checked_metadata", "_decimal", "_is_decimal", "_parse_usual", "_waveform_id", "before_digest", "claims_with", "crc_of_id", "parse_chunk", "sequence_number", "shared_claims"], "wavestitch/contracts/chunk_metadata.py": ["Metadata.sample_bytes", "_each_once", "_interpret", "_number", "_parse", "_read", "_remember", "_text", "parse_metadata"], "wavestitch/contracts/chunk_proof.py": ["ChunkProof.header"], "wavestitch/contracts/errors.py": ["WavestitchError.__init__"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"], "wavestitch/contracts/held_choice.py": ["_is_at", "check_pick", "pick_copy", "topics_at"], "wavestitch/contracts/offset_range.py": ["parse_place"], "wavestitch/contracts/partial_waveform.py": ["PartialWaveform.borders", "PartialWaveform.digest", "PartialWaveform.samples", "PartialWaveform.supposed", "_lengths", "_most_common", "lay_out"], "wavestitch/contracts/rows.py": ["texts_once"]}}
{"file": "tests/unit/test_partitioning.py", "digest": "0fbf50a80d3ada13", "seconds": 1.67, "functions": {"wavestitch/contracts/errors.py": ["WavestitchError.__init__"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"], "wavestitch/contracts/id_partitions.py": ["IdBinding.binds", "IdBinding.of"], "wavestitch/contracts/murmur2.py": ["key_partition", "murmur2"]}}
{"file": "tests/unit/test_past_cost.py", "digest": "ba1ddfe2b1801ded", "seconds": 0.19, "functions": {"wavestitch/contracts/offset_range.py": ["OffsetRange.size", "pack_units"], "wavestitch/contracts/past_cost.py": ["_seconds", "forecast", "reading_weights"], "wavestitch/contracts/plain_yaml.py": ["_PlainLoader.compose_node", "_PlainLoader.construct_mapping", "_PlainLoader.construct_object", "_PlainLoader.construct_scalar", "read_plain_yaml"], "wavestitch/contracts/plan.py": ["Plan.records", "Plan.sealed", "_as_first_said"], "wavestitch/contracts/stream.py": ["Stream._a_key_where_one_is_used", "Stream._kafka_name", "Stream._plain_name", "Stream._started_in_one_way", "parse_stream"], "wavestitch/contracts/versioned.py": ["Versioned._adapter", "Versioned._dump", "Versioned.content"]}}
{"file": "tests/unit/test_payload_apart.py", "digest": "a270943886acccdd", "seconds": 0.26, "functions": {"wavestitch/contracts/payload_apart.py": ["_spans", "cut_payload", "is_payload_name", "name_payload", "read_apart", "say_apart"]}}
{"file": "tests/unit/test_payload_settings.py", "digest": "dced4b2bf1978edc", "seconds": 0.18, "functions": {"wavestitch/contracts/errors.py": ["WavestitchError.__init__"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"], "wavestitch/contracts/redaction.py": ["_as_read", "_secret_in_address", "_secret_in_words", "is_reference", "is_secret", "parameters", "secret_inside", "shown", "shown_address", "shown_section"], "wavestitch/contracts/warehouse.py": ["_parts", "_shown", "plain_store", "plain_warehouse"]}}
{"file": "tests/unit/test_plain_text.py", "digest": "6f3d85f40f8cc324", "seconds": 2.91, "functions": {"wavestitch/batch/request.py": ["check_gate"], "wavestitch/batch/rewind.py": ["plan_rewind"], "wavestitch/batch/work_folder.py": ["WorkFolder.__init__", "WorkFolder.abandon"], "wavestitch/contracts/errors.py": ["WavestitchError.__init__", "WavestitchError.to_json", "error_from_json"], "wavestitch/contracts/harmless.py": ["for_html", "for_markdown", "harmless", "harmless_lines", "is_plain", "named"], "wavestitch/contracts/plain_text.py": ["name_of_person", "said_by_person"], "wavestitch/contracts/plain_yaml.py": ["_PlainLoader.compose_node", "_PlainLoader.construct_mapping", "_PlainLoader.construct_object", "_PlainLoader.construct_scalar", "read_plain_yaml"], "wavestitch/contracts/plan_id.py": ["is_plan_id"], "wavestitch/contracts/stream.py": ["Stream._a_key_where_one_is_used", "Stream._kafka_name", "Stream._plain_name", "Stream._started_in_one_way", "parse_stream"]}}
{"file": "tests/unit/test_plain_waveforms.py", "digest": "e19119dbd4820693", "seconds": 13.46, "functions": {"consumers/arrow_columns.py": ["_whole_column", "ends_to_offsets", "to_column"], "consumers/pending_rows.py": ["PendingRows.__len__", "PendingRows._add_row", "PendingRows._build", "PendingRows.add_chunk", "PendingRows.clear", "PendingRows.to_batch"], "wavestitch/contracts/assembly.py": ["Assembly.newest_ms", "ChunkFacts.coordinate", "ChunkFacts.identity", "ChunkFacts.key", "ChunkFacts.place", "Said.__init__", "Said.learn", "_conflict", "_from_start", "_judge", "_lessons", "_missing", "_one_of_each", "assemble_waveform", "no_chunk"], "wavestitch/contracts/belief.py": ["Belief.__init__", "Belief.believes", "Belief.why_not"], "wavestitch/contracts/chunk_header.py": ["_is_decimal", "_parse_usual", "_waveform_id", "before_digest", "claims_with", "crc_of_id", "parse_chunk", "sequence_number", "shared_claims"], "wavestitch/contracts/chunk_metadata.py": ["Metadata.end_time_ns", "Metadata.sample_bytes", "_each_once", "_interpret", "_number", "_parse", "_read", "_remember", "_text", "parse_metadata"], "wavestitch/contracts/chunk_proof.py": ["ChunkProof.header", "meets"], "wavestitch/contracts/chunk_table.py": ["ChunkTable.__len__", "ChunkTable.facts", "ChunkTable.is_in_order", "ChunkTable.of", "ChunkTable.stored_bytes", "ChunkTable.valid", "_filled", "_numbered", "_spelled", "are_among"], "wavestitch/contracts/copies.py": ["say_no_more"], "wavestitch/contracts/decided.py": ["Decision.counts", "Decision.reasons", "Fates.__init__", "Fates.__iter__", "Fates.__len__", "Fates._fates", "Fates._merged", "Fates.by_partition", "Fates.counts", "Fates.order", "Fates.update", "_as_repr", "_bytes_of", "_hex", "_line", "_order", "_plain_lines", "_text", "holds_in_order", "seal_decision"], "wavestitch/contracts/decision.py": ["_believed", "_blocked", "_by_id", "_held_by_id", "_owner", "_taken_up", "check_balance", "decide", "decide_beside"], "wavestitch/contracts/held.py": ["HeldChunk.counted_as", "HeldChunk.key", "PublishedWaveform.has", "bare_keys", "is_released", "open_deadlines", "pieces_of"], "wavestitch/contracts/held_mark.py": ["held_bytes"], "wavestitch/contracts/id_partitions.py": ["IdBinding.__init__", "IdBinding.of"], "wavestitch/contracts/metadata_columns.py": ["MetadataColumns.of_each", "MetadataColumns.taken", "read_metadata", "read_texts"], "wavestitch/contracts/next_head.py": ["next_head"], "wavestitch/contracts/pending_decision.py": ["PendingDecision.__init__", "PendingDecision._assembled", "PendingDecision._beside_held", "PendingDecision._brings_bytes", "PendingDecision._counted_as", "PendingDecision._held_after", "PendingDecision._judge", "PendingDecision._keep_open", "PendingDecision._lacks_bytes", "PendingDecision._settle", "PendingDecision._waits", "PendingDecision.assemble", "PendingDecision.closed", "PendingDecision.compare_with_published", "PendingDecision.is_left", "PendingDecision.keep_blocked", "PendingDecision.leave_to_its_owner", "PendingDecision.set_aside", "PendingDecision.waiting", "_open_chunks", "_verdict", "blocked_by"], "wavestitch/contracts/plain_waveforms.py": ["PlainWaveforms.__len__", "PlainWaveforms.ids", "PlainWaveforms.is_plain", "PlainWaveforms.others", "PlainWaveforms.without", "_Facts.of", "_good", "_in_order", "_starts", "_texts", "_whole", "find_plain", "no_plain"], "wavestitch/contracts/plain_yaml.py": ["_PlainLoader.compose_node", "_PlainLoader.construct_mapping", "_PlainLoader.construct_object", "_PlainLoader.construct_scalar", "read_plain_yaml"], "wavestitch/contracts/plan.py": ["Plan.accepts", "Plan.expires", "Plan.held_choice", "Plan.holds", "Plan.moves_positions", "Plan.promotion", "Plan.sealed", "PlanKind.holds", "Scope.owns", "_as_first_said"], "wavestitch/contracts/position.py": ["Head._still_at_gate", "Head.as_of", "Head.next", "_offsets", "advance_watermark"], "wavestitch/contracts/quantities.py": ["after", "apart", "before", "epoch_ms", "milliseconds"], "wavestitch/contracts/rows.py": ["texts_once"], "wavestitch/contracts/start_times.py": ["start_time_ns"], "wavestitch/contracts/stream.py": ["Limits._batch_holds_a_waveform", "Limits._within_cap", "Stream._a_key_where_one_is_used", "Stream._kafka_name", "Stream._plain_name", "Stream._started_in_one_way", "_size", "_span", "parse_stream"], "wavestitch/contracts/tombstones.py": ["Tombstones.__init__", "Tombstones.cover"], "wavestitch/contracts/versioned.py": ["Versioned._dump", "Versioned.content"]}}
{"file": "tests/unit/test_plan_and_receipt.py", "digest": "b4b9669d0406df87", "seconds": 0.4, "functions": {"wavestitch/contracts/errors.py": ["WavestitchError.__init__"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"], "wavestitch/contracts/offset_range.py": ["OffsetRange.__str__"], "wavestitch/contracts/plan.py": ["<lambda>", "Plan.sealed", "Plan.to_json", "_as_first_said", "plan_from_json"], "wavestitch/contracts/position.py": ["said_without_batches"], "wavestitch/contracts/receipt.py": ["Receipt.to_json", "_impossible", "_impossible_slice", "check_coverage", "receipt_from_json"], "wavestitch/contracts/stream.py": ["Limits._batch_holds_a_waveform", "Limits._within_cap", "Stream._a_key_where_one_is_used", "Stream._few_enough_to_look_at", "Stream._five_fields", "Stream._kafka_name", "Stream._names_a_key_and_no_other_secret", "Stream._plain_name", "Stream._started_in_one_way", "_size", "_span"], "wavestitch/contracts/versioned.py": ["Versioned.<lambda>", "Versioned._adapter", "Versioned._current", "Versioned._dump", "Versioned.content", "Versioned.of", "Versioned.read", "Versioned.text", "_unsaid", "check_format"]}}
{"file": "tests/unit/test_plan_request.py", "digest": "3d9b5ff6357ef2d7", "seconds": 3.25, "functions": {"wavestitch/batch/request.py": ["_backfill", "_part", "_place", "_text", "check_gate", "earlier_plan", "parse_duration", "parse_partitions", "parse_range", "parse_until", "plan_request", "rewind_target"], "wavestitch/contracts/errors.py": ["WavestitchError.__init__"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"], "wavestitch/contracts/instant.py": ["parse_time"], "wavestitch/contracts/plain_text.py": ["said_by_person"], "wavestitch/contracts/quantities.py": ["epoch_ms", "time_ns"], "wavestitch/contracts/stream.py": ["_show", "_span"]}}
