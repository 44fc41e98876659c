"""A history of a product whose effects come in another order, or at another time, is no way through the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.histories.by_hand import a_rewind, before_quiet, head, planned, projected, sound
from tests.histories.events import Event, Looked, Reset, Retained, Shared, Started
from tests.histories.random_histories import play_history
from tests.histories.seeded_bugs.of_heads import a_rewind_keeps_the_generation, the_fence_lets_everybody_through
from tests.histories.seeded_bugs.of_offsets import (
    a_position_that_retention_overtook_moves_silently,
    what_a_rewind_skips_is_not_recorded,
)
from tests.histories.table_events import CatalogSetBack
from tests.histories.tracing import OffTrack, follow
from tests.wrong_products import (
    the_group_is_written_before_the_head_is_committed,
    whatever_the_group_shows_is_written_over,
)
from wavestitch.batch import backlog

Patch = pytest.MonkeyPatch
MOST_SEEDS = 40


def test_a_sound_history_is_a_way_through_the_model() -> None:
    taken = follow(sound())
    assert taken == {"plan ingest": 1, "commit ingest": 1, "project": 2}
    assert follow(before_quiet(*a_rewind(2)))["rewind"] == 1


def test_a_head_that_nobody_made_is_shown_in_vain() -> None:
    with pytest.raises(OffTrack, match="there is none such"):
        follow(before_quiet(projected(6, 9)))


def test_what_was_shown_may_be_begun_when_retention_took_it_and_is_shown_of_nothing_that_was_gone_then() -> None:
    shown = planned("p5", run="run-5", kind="promote", ranges=((0, 0, 6),))
    taken = Retained("topic-1", 0, 3)
    assert follow(before_quiet(taken, shown))["retention"] == 1
    now = replace(shown, base_sequence=3, generation=2, positions={0: 4})
    with pytest.raises(OffTrack, match="promote is planned from 0, where the log was cut"):
        follow(before_quiet(taken, *a_rewind(4), now))


def test_who_was_shown_a_partition_plans_nothing_where_the_group_contradicts_there() -> None:
    """Who looked before it was added has not asked the group about it."""
    plans = planned("p2", run="run-2"), replace(head(3, 6), kind="ingest", plan_id="p2", positions={0: 6, 1: 0})
    shows = Shared("topic-1", 1, 0, another=True, generation=1, sequence=2)
    looks = [(Started("run-2", "ingest", 9), Looked("run-2", "topic", (), shown)) for shown in (1, 2)]
    before, now = (before_quiet(*look, shows, Looked("run-2", "head"), *plans) for look in looks)
    assert follow(before)["commit ingest"] == 4, "two ingests, of two partitions"
    again = before_quiet(*looks[0], *looks[1][1:], shows, Looked("run-2", "head"), *plans)
    with pytest.raises(OffTrack, match="where the group contradicts the catalog"):
        follow(again)
    with pytest.raises(OffTrack, match=r"partition 1, .* where the group contradicts the catalog"):
        follow(now)


def test_who_is_shown_a_partition_only_when_it_writes_the_group_has_asked_before_that() -> None:
    """Where the catalog was lost, and the group shows what it was in that partition alone."""
    hides, shows = (Looked("run-2", "topic", (), shown) for shown in (1, 2))
    both = replace(head(3, 6), kind="maintenance", positions={0: 6, 1: 0})
    lost = both, Shared("topic-1", 1, 0, another=True, generation=1, sequence=3), CatalogSetBack(0)
    made = replace(head(1, 6), run="run-2"), Looked("run-2", "group")
    plan = planned("p2", run="run-2", base_sequence=1)

    def run(*events: Event) -> None:
        group = Reset("topic-1", 0, 6)
        follow(before_quiet(*lost, group, Started("run-2", "ingest", 9), *events))

    run(hides, Looked("run-2", "head"), *made, shows, plan)
    run(*made, hides, Looked("run-2", "head"), shows, projected(6, 1, run="run-2"), plan)
    found = Looked("run-2", "head")
    for seen in ((shows, found, *made), (hides, found, *made, plan, shows, found), (hides, shows, found, *made)):
        with pytest.raises(OffTrack, match=r"partition 1, .* where the group contradicts the catalog"):
            run(*seen, replace(plan, plan_id="p3"))


def test_who_begins_anew_by_a_broker_that_shows_no_such_partition_forgets_where_it_stood() -> None:
    """Also where its log begins later by now. Who is shown it, or leaves it where it was not, goes to what is gone."""
    goes = replace(head(3, 6), kind="rewind", generation=2, positions={0: 6, 1: 4}, skipped=((1, 0, 4),))
    both = Started(goes.run, "rewind", 9), goes, Retained("topic-1", 1, 4)

    def anew(shown: int, positions: dict[int, int]) -> None:
        made = replace(head(4, 6), run="run-5", kind="rewind", generation=3, positions=positions)
        looks = Started("run-5", "rewind", 9), Looked("run-5", "topic", (), shown)
        follow(before_quiet(*both, *looks, Looked("run-5", "head"), Looked("run-5", "group"), made))

    anew(1, {0: 6})
    for shown, positions in ((2, {0: 6}), (1, {0: 6, 1: 0})):
        with pytest.raises(OffTrack, match=r"partition 1, .* rewind goes to 0, where the log was cut"):
            anew(shown, positions)


def nobody_looks_where_the_log_begins(patch: Patch) -> None:
    patch.setattr(backlog, "refuse_overtaken", lambda *_: None)


MUTANTS: dict[str, tuple[Callable[[Patch], None], str]] = {
    plant.__name__.replace("_", " "): (plant, said)
    for plant, said in (
        (the_group_is_written_before_the_head_is_committed, "there is none such"),
        (the_fence_lets_everybody_through, "a fenced"),
        (a_rewind_keeps_the_generation, "in no newer generation"),
        (whatever_the_group_shows_is_written_over, "nobody has taken over"),
        (what_a_rewind_skips_is_not_recorded, "does not name what it goes over"),
        (a_position_that_retention_overtook_moves_silently, "which it did not read"),
        (nobody_looks_where_the_log_begins, "where the log was cut"),
    )
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_product_that_does_it_in_another_order_leaves_the_model(name: str, monkeypatch: Patch) -> None:
    plant, said = MUTANTS[name]
    plant(monkeypatch)
    seen: list[Any] = []
    for seed in range(MOST_SEEDS):
        try:
            follow(play_history(seed)[0])
        except OffTrack as off:
            seen.append(str(off))
            if said in str(off):
                return
    pytest.fail(f"all of them are ways through the model, but for {seen}")
