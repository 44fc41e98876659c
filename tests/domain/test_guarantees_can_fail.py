"""Each guarantee fails where it is violated: a sound run is seen from outside, then one thing in it is made wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders.ranges import span
from tests.domain.protocol_machine import ProtocolMachine
from tests.guarantees import Balanced, NoDuplicates, NoInvention, NoLoss, Sight
from tests.guarantees_of_runs import Fenced, Idempotent, OffsetsLast
from tests.held_guarantees import Decided
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.rewind import Target
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.position import HeadKind, Position
from wavestitch.contracts.quantities import Offset


@pytest.fixture(scope="module")
def sound() -> Sight:
    """A published waveform, one that waits, a corrupt chunk; after a backfill, an ingest, a rewind and an ingest."""
    machine = ProtocolMachine()
    machine.begin(partitions=1, on_reset="adopt", first=[(2, 5)])
    machine.backfill(since=0, span=300, until="end")
    machine.produce_scattered(order=[0, 1, 2], to=(0, 0, 0), withhold=1, odd=5)
    machine.produce_oddly(what="lie", which=0, to=0, how=0)
    machine.ingest(most=1000, park=0, until="end")
    machine.launch("rewind", lambda: machine.rewind(Target("earliest"), False), "end")
    machine.ingest(most=1000, park=0, until="end")
    sight = machine.sight()
    for guarantee in (NoLoss(), NoDuplicates(), NoInvention(), OffsetsLast(), Fenced(), Balanced()):
        guarantee.check(sight)
    Idempotent().check(sight, machine.sight())
    assert [h.kind for h in sight.heads] == ["first", "backfill", "ingest", "rewind", "ingest"]
    assert [row.id for row in sight.published] == ["w1"]
    assert {row.reason for row in sight.held} == {"open", "corrupt"}
    return sight


def fails(guarantee: Any, sight: Sight, saying: str) -> None:
    with pytest.raises(AssertionError, match=saying):
        guarantee.check(sight)


def test_no_loss_misses_a_held_row(sound: Sight) -> None:
    fails(NoLoss(), replace(sound, held=[r for r in sound.held if r.reason != "open"]), "neither published nor held")


def test_no_loss_misses_what_is_no_chunk(sound: Sight) -> None:
    fails(NoLoss(), replace(sound, held=[r for r in sound.held if r.reason != "corrupt"]), "no chunk .* not held")


def test_no_loss_misses_a_published_row(sound: Sight) -> None:
    fails(NoLoss(), replace(sound, published=[]), "neither published nor held")


def test_no_loss_does_not_count_rows_of_a_decision_that_was_never_committed(sound: Sight) -> None:
    fails(NoLoss(), replace(sound, held=[replace(r, decision="never") for r in sound.held]), "I1")


def test_no_loss_wants_the_payload_too(sound: Sight) -> None:
    fails(NoLoss(), replace(sound, held=[replace(r, payload=b"else") for r in sound.held]), "without its bytes")


def skipped_to_the_end(sound: Sight) -> Sight:
    """After the first head nobody has read anything: a rewind went over it all, and names it."""
    first, last = sound.heads[0], sound.heads[-1]
    end = last.positions[0].next_offset
    over = replace(last, kind=HeadKind.REWIND, plan_id="", skipped=(span(0, 0, end),))
    return replace(sound, held=[], published=[], heads=[first, over])


def test_no_loss_exempts_what_was_skipped_by_name(sound: Sight) -> None:
    NoLoss().check(skipped_to_the_end(sound))


def test_no_loss_exempts_no_longer_what_somebody_went_back_for(sound: Sight) -> None:
    """Whatever the head goes on naming, and whoever has named it before."""
    skipped = skipped_to_the_end(sound)
    back = replace(sound.heads[0], kind=HeadKind.REWIND, skipped=())
    NoLoss().check(replace(skipped, heads=[*skipped.heads, back]))
    again = replace(sound.heads[-1], kind=HeadKind.INGEST)
    fails(NoLoss(), replace(skipped, heads=[*skipped.heads, back, again]), "neither published nor held")
    still = replace(back, skipped=skipped.heads[-1].skipped)
    fails(NoLoss(), replace(skipped, heads=[*skipped.heads, still]), "names .* as skipped, and has not gone past that")


def test_no_loss_exempts_nothing_that_a_rewind_went_over_without_naming_it(sound: Sight) -> None:
    first, over = skipped_to_the_end(sound).heads
    silent = replace(sound, held=[], published=[], heads=[first, replace(over, skipped=())])
    fails(NoLoss(), silent, "neither published nor held")


def test_at_a_place_that_was_used_again_either_record_may_be_what_was_read(sound: Sight) -> None:
    """An unclean election cuts the log off, and other records take the offsets."""
    (row,) = sound.published
    there = {coordinate for coordinate, _, _ in row.chunks}
    before = [r for r in sound.records if r.coordinate in there]
    others = [replace(r, headers=(), value=b"another") for r in before]
    for records in ([*sound.records, *others], [*others, *sound.records]):
        again = replace(sound, records=records)
        for guarantee in (NoLoss(), NoInvention(), Balanced()):
            guarantee.check(again)
    neither = [r for r in sound.records if r.coordinate not in there] + others + others
    fails(NoInvention(), replace(sound, records=neither), "no chunk was produced")
    fails(NoLoss(), replace(sound, records=neither), "is not held")


def test_no_duplicates_sees_an_id_twice(sound: Sight) -> None:
    fails(NoDuplicates(), replace(sound, published=[*sound.published, *sound.published]), "more than once")


def test_no_invention_sees_other_bytes(sound: Sight) -> None:
    rows = [replace(row, samples=row.samples[::-1]) for row in sound.published]
    fails(NoInvention(), replace(sound, published=rows), "other bytes")


def test_no_invention_sees_a_chunk_from_another_place(sound: Sight) -> None:
    rows = [replace(row, chunks=row.chunks[::-1]) for row in sound.published]
    fails(NoInvention(), replace(sound, published=rows), "is not the chunk")


def test_no_invention_sees_a_waveform_cut_short(sound: Sight) -> None:
    rows = [replace(row, chunks=row.chunks[:1], samples=row.samples[:2]) for row in sound.published]
    fails(NoInvention(), replace(sound, published=rows), "claim another count|says that it has")


def test_offsets_last_sees_a_group_ahead_of_every_head(sound: Sight) -> None:
    tag = sound.heads[-1].tag("0f8fad5b").encode()
    fails(OffsetsLast(), replace(sound, group={0: (99, tag)}), "no head beyond")


def test_offsets_last_lets_other_people_put_the_group_anywhere(sound: Sight) -> None:
    OffsetsLast().check(replace(sound, group={0: (99, "")}))


def test_idempotent_sees_a_second_head(sound: Sight) -> None:
    with pytest.raises(AssertionError, match="heads changed"):
        Idempotent().check(replace(sound, heads=sound.heads[:-1]), sound)


def test_fenced_sees_a_run_that_was_planned_before_a_rewind(sound: Sight) -> None:
    late = replace(
        sound.heads[-1], plan_id=sound.heads[1].plan_id, kind=HeadKind.BACKFILL, positions=sound.heads[-2].positions
    )
    heads = [sound.heads[0], replace(sound.heads[1], plan_id=""), *sound.heads[2:-1], late]
    fails(Fenced(), replace(sound, heads=heads), "before a rewind")


def test_fenced_sees_a_plan_that_was_committed_twice(sound: Sight) -> None:
    again = replace(sound.heads[-1], sequence=sound.heads[-1].sequence + 1)
    fails(Fenced(), replace(sound, heads=[*sound.heads, again]), "became heads")


def test_fenced_sees_a_backfill_that_moves_the_positions(sound: Sight) -> None:
    heads = [sound.heads[0], replace(sound.heads[1], positions={0: Position(Offset(1))}), *sound.heads[2:]]
    fails(Fenced(), replace(sound, heads=heads), "moved the positions")


def test_fenced_sees_a_rewind_without_a_new_generation(sound: Sight) -> None:
    heads = [*sound.heads[:3], replace(sound.heads[3], generation=1), *sound.heads[4:]]
    fails(Fenced(), replace(sound, heads=heads), "generation")


@pytest.mark.parametrize(
    ("name", "saying"),
    [("read", "does not balance"), ("planned", "without a fate"), ("carried_out", "does not balance")],
)
def test_balanced_sees_a_partition_that_does_not_add_up(sound: Sight, name: str, saying: str) -> None:
    row = sound.history[-1]
    wrong = {p: {**n, name: n[name] + 1} for p, n in row.partitions.items()}
    fails(Balanced(), replace(sound, history=[replace(row, partitions=wrong)]), saying)


def test_balanced_sees_that_less_is_carried_in_than_was_carried_out(sound: Sight) -> None:
    row = sound.history[-1]
    wrong = replace(row, counts={**row.counts, "carried_in": 0})
    fails(Balanced(), replace(sound, history=[wrong]), "carried in")


def test_balanced_sees_records_that_a_batch_never_read(sound: Sight) -> None:
    fails(Balanced(), replace(sound, records=sound.records[1:]), "were there")


@pytest.fixture(scope="module")
def decided() -> Sight:
    """Of a waveform that contradicts itself one copy was picked; a refused one was discarded and restored."""
    machine = ProtocolMachine()
    machine.begin(partitions=1, on_reset="adopt", first=[(0, 5)], held="held")
    for action, waveform_id in ((HeldAction.PICK, "w3"), (HeldAction.DISCARD, "w2"), (HeldAction.RESTORE, "w2")):
        pick = "first" if action is HeldAction.PICK else ""
        machine.decide(machine.edges(), action, Selection(ids=(waveform_id,)), pick)
    sight = machine.sight()
    Decided().check(sight)
    assert [row.id for row in sight.published] == ["w1", "w3"]
    assert [r.reason for r in sight.held if r.id == "w2"][::2] == [
        "failed_expectation",
        "discarded",
        "failed_expectation",
    ]
    return sight


def test_decided_sees_a_conflict_that_ended_by_itself(decided: Sight) -> None:
    alone = [r for r in decided.held if r.id == "w3"]
    fails(Decided(), replace(decided, held=alone, plans={}), "nobody decided that")


def test_decided_sees_that_a_restored_chunk_is_held_for_another_reason(decided: Sight) -> None:
    newest = decided.heads[-1].sequence
    held = [replace(r, reason="open") if r.sequence == newest else r for r in decided.held]
    fails(Decided(), replace(decided, held=held), "it was failed_expectation when it was discarded")


def test_decided_sees_what_nobody_discarded(decided: Sight) -> None:
    held = [replace(r, reason="discarded") if r.reason == "open" else r for r in decided.held]
    first = [*held, *(replace(r, reason="open", sequence=0) for r in held if r.id == "w4")]
    fails(Decided(), replace(decided, held=first), "nobody discarded it")


def test_decided_sees_what_was_published_and_discarded(decided: Sight) -> None:
    picked = {(seq, length, piece) for seq, (_, length, piece) in enumerate(decided.published[1].chunks)}
    gone = [replace(r, reason="discarded", sequence=r.sequence + 1) for r in decided.held if r.piece in picked]
    fails(Decided(), replace(decided, held=[*decided.held, *gone]), "and was discarded")


def test_decided_sees_one_of_several_copies(decided: Sight) -> None:
    held = [r for r in decided.held if r.id != "w3" or r.reason != "discarded"]
    fails(Decided(), replace(decided, held=held), "contradict each other")
