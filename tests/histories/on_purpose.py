"""What is done on purpose in a history, since chance would take too long: an accident of several parts, in their order.

Each begins where the stream is quiet, or where it stands, does nothing where it does not fit, and is named by a seeded
bug (`seeded_bugs.registry.shows`). Where the product is sound nothing shows. Judges nothing.
"""

from __future__ import annotations

from functools import partial

from tests.builders.records import Letter
from tests.fakes.batch import FakeEdges
from tests.fakes.fake_maintenance import maintain
from tests.fakes.fake_rows import StoredHeld
from tests.fakes.faults import Steps
from tests.histories.accidents import ANOTHER_TABLE
from tests.histories.events import Advised, Rewound
from tests.histories.healing import Healing
from tests.histories.promotion_events import GateSays
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.promote import PromotionPreview
from wavestitch.batch.request import rewind_target
from wavestitch.batch.rewind import Target
from wavestitch.batch.verify_request import VerifyRequest
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.position import GroupOffset, Tag
from wavestitch.contracts.quantities import Generation, Offset, Partition
from wavestitch.contracts.reasons import Reason


class OnPurpose(Healing):
    """`on_purpose`: the one that is done before the history is healed; empty: none."""

    on_purpose = ""

    def heal(self) -> None:
        if self.on_purpose:
            getattr(self, self.on_purpose)()
        super().heal()

    def is_quiet(self) -> bool:
        """After everything there is was read; whether there is one head now, and one table."""
        self.put_right()
        self.quiet_runs()
        tables = self.bench.tables
        mine = bool(tables.snapshots) and tables.snapshots[-1].topic_id == self.bench.log.topic_id
        return mine and not (tables.headless or self.forked)

    # gates

    def the_landing_is_lost_at_a_closed_gate(self) -> None:
        """With all that batches left in it; more comes, among which what was stopped would pass."""
        if not self.is_quiet() or self.stream.on_closed_gate != "stop":
            return
        p, _ = self.a_partition()
        bad, good = self.stops_by_itself(8, p)
        if not bad or len(good) < 2:
            return
        self.launch("ingest", partial(self.batch, self.stream, PlanRequest()), far=True)
        self.ops["landing lost at a closed gate"] += 1
        for left in (self.bench.gates, self.bench.at_gates, self.bench.plans, self.bench.receipts):
            left.clear()
        for one in good:
            self.send(one, p)

    # elections

    def stands(self, p: int) -> int:
        """The position; 0 where there is none on this topic."""
        head = self.bench.tables.snapshots[-1] if self.bench.tables.snapshots else None
        mine = head is not None and head.topic_id == self.bench.log.topic_id and not self.bench.tables.headless
        return head.positions[Partition(p)].next_offset if head is not None and mine and p in head.positions else 0

    def written_anew(self, p: int, *, cut: int, until: int) -> None:
        self.bench.log.truncate(Partition(p), Offset(cut))
        while self.bench.log.partitions[Partition(p)].end < until:
            for one in self.new_waveform(1):
                self.send(one, p)

    def forward_over_a_cut(self) -> None:
        """An election cuts the log off below the head, it is written anew, and somebody goes on behind that."""
        p, at = self.a_partition()
        stands = self.stands(p)
        if at.log_start + 1 < stands <= at.end:
            self.written_anew(p, cut=stands - 2, until=stands + 2)
            self.start_rewind(Target(offsets={Partition(p): Offset(stands + 1)}), True, far=True)

    def back_over_a_cut_that_retention_passed(self) -> None:
        """The log is cut off and written anew, retention takes some of that, and somebody goes back to the rest."""
        if not self.is_quiet():
            return
        p, at = self.a_partition()
        for one in [self.new_waveform(1)[0] for _ in range(4)]:
            self.send(one, p)
        self.quiet_runs()
        stands = self.stands(p)
        if at.log_start + 4 <= stands <= at.end:
            self.written_anew(p, cut=stands - 4, until=stands + 2)
            self.bench.log.retain_from(Partition(p), Offset(stands - 2))
            self.start_rewind(rewind_target(f"{p}:earliest"), True, far=True)

    def put_back_from_a_backup(self, *, restarts: int = 0, elected: bool = True) -> None:
        """A broker is restarted, more is written and read, its disk is put back, and the log grows past the position.
        `restarts`: amid what is written then. `elected`: whether elections are noticed before."""
        if not self.is_quiet():
            return
        p, at = self.a_partition()
        for one in [self.new_waveform(1)[0] for _ in range(2)]:
            self.send(one, p)
        self.quiet_runs()
        if self.stands(p) != at.end or not self.back_up(p, restarted=elected):
            return
        for one in [self.new_waveform(1)[0] for _ in range(3)]:
            self.send(one, p)
        self.quiet_runs()
        if self.put_back(p, more=0, elected=elected):
            for n, one in enumerate(self.new_waveform(1)[0] for _ in range(5)):
                for _ in range(restarts if n == 2 else 0):
                    self.bench.log.restart(Partition(p))
                self.send(one, p)

    def put_back_and_restarted_more_often(self) -> None:
        self.put_back_from_a_backup(restarts=2)

    def put_back_into_the_very_epoch(self) -> None:
        self.put_back_from_a_backup(restarts=1, elected=False)

    # the group

    def another_table_beside_a_rewind(self) -> None:
        """Another deployment writes the group, right after a rewind has made its head and before it shows that."""
        log, tables = self.bench.log, self.bench.tables
        p, at = self.a_partition()
        if not tables.snapshots or log.live_members or tables.headless:
            return
        self.history.append(Rewound(f"run-{self.launched + 1}", "offsets", True, (p,)))
        back = Target(offsets={Partition(p): at.log_start})
        run = self.launch("rewind", partial(self.rewound, back, True), now=0)
        self.to_a_commit(run)
        run.advance()
        if not run.done:
            log.group[Partition(p)] = GroupOffset(at.log_start, tables.snapshots[-1].tag(ANOTHER_TABLE).encode())
            version = tables.snapshots[-1].version
            log.tell("shared", partition=p, offset=at.log_start, another=True, version=version)
        self.step(run, 1000)

    def a_forged_tag(self) -> None:
        """Somebody writes that the group shows a head far beyond any, and then follows what refusals advise."""
        if self.is_quiet():
            p, at = self.a_partition()
            tables = self.bench.tables
            tag = Tag(tables.uuid, Generation(10**12), tables.snapshots[-1].sequence)
            self.bench.log.group[Partition(p)] = GroupOffset(at.end, tag.encode())
            self.bench.log.tell("forged", partition=p, offset=at.end)

    def a_reset_beside_what_retention_overtook(self) -> None:
        """Retention overtakes one partition, another one was set back: what the refusal says of that is done."""
        log = self.bench.log
        if len(log.partitions) < 2:
            log.add_partition()
        for p in log.partitions:
            self.send(self.new_waveform(1)[0], p)
        if not self.is_quiet() or self.stream.on_reset != "adopt":
            return
        overtaken, back = self.random.sample(sorted(log.partitions), 2)
        for _ in range(3):
            self.send(self.new_waveform(1)[0], overtaken)
        log.retain_from(overtaken, Offset(log.partitions[overtaken].end - 1))
        if self.stands(back) > log.partitions[back].log_start:
            log.reset_group(back, Offset(self.stands(back) - 1))
            refused = self.all_there_is()
            self.history.append(Advised(f"run-{self.launched + 1}", refused.name))
            meant = PlanRequest(only=frozenset(log.partitions) - {overtaken})
            self.launch("ingest", partial(self.batch, self.stream, meant), far=True)

    def a_partition_that_was_added_is_skipped_and_that_is_undone(self) -> None:
        """With the others. The head before knew nothing of it: it goes back to its beginning."""
        if not self.is_quiet():
            return
        self.bench.log.add_partition()
        for p in self.bench.log.partitions:
            self.send(self.new_waveform(1)[0], p)
        done = self.start_rewind(rewind_target("latest"), True, far=True)
        if done.error is None:
            self.launch_undo(self.bench.tables.snapshots[-1].sequence, None, far=True)

    def a_topic_is_made_anew_under_what_is_parked(self) -> None:
        """What is held lay in a topic that is no more; somebody publishes it once the new one is read."""
        waveform_id = self.parked_wave()
        if waveform_id is not None:
            self.bench.log.recreate(len(self.bench.log.partitions))
            self.start_rewind(Target("new-topic"), True, far=True)
            self.send(self.new_waveform(1)[0])
            self.all_there_is()
            self.launch_decision(HeldAction.REDRIVE, Selection(ids=(waveform_id,)), far=True)

    def a_catalog_is_set_back_beside_maintenance(self) -> None:
        """A backup is put back, the nightly maintenance runs, and somebody brings the newer catalog back."""
        found = self.sound_ones(2, 1)
        if not self.is_quiet():
            return
        for (one,) in found:
            self.send(one)
            self.all_there_is()
        heads = self.bench.tables.snapshots
        edges = FakeEdges(self.bench, self.stream, self.clock_ms, self.carrying())
        with self.bench.tables.set_back_for_a_while(self.random.choice(heads[-4:-1] or heads).sequence):
            self.launch("maintain", partial(maintain, edges, most=1), far=True)

    # what is held

    def whole_when_it_is_restored_too_late(self) -> None:
        """Somebody lets a waveform go; the rest of it comes, more time passes than it may wait, and it is restored."""
        found = self.sound_ones(1, 2)
        if not found or not self.is_quiet():
            return
        first, last = found[0]
        wanted = Selection(ids=(self.id_of(first),))
        self.send(first)
        self.all_there_is()
        self.launch_decision(HeldAction.DISCARD, wanted, far=True)
        self.send(last)
        self.all_there_is()
        self.clock_ms += 1_000_000
        for p in self.bench.log.partitions:
            self.send(self.new_waveform(1)[0], p)
        self.all_there_is()
        self.launch_decision(HeldAction.RESTORE, wanted, far=True)

    def approved_after_more_came(self) -> None:
        """Somebody is shown what a decision about a parked waveform would do; before it is done, more of that comes, or
        the definition changes."""
        waveform_id = self.parked_wave()
        if waveform_id is not None:
            self.approved_later(waveform_id)

    # promotions

    def what_was_promoted_is_taken_back(self) -> None:
        """Of what is published, and was refused, some is promoted, the other way round, and that is undone."""
        found = self.sound_ones(3, 1)
        if not self.is_quiet():
            return
        for (one,) in found:
            self.send(one)
        self.all_there_is()
        for _ in range(3):
            self.promote_and_take_back()
        shown = self.show_a_promotion()
        if shown is None:
            return
        done = self.launch_promotion(shown.plan.plan_id, far=True)
        self.put_right_and_redriven(shown.promotion.ids[0])
        for offered in self.offered:
            self.launch_promotion(offered.plan.plan_id, far=True)
        self.take_back(done, far=True)

    def a_flat_line_is_cut_under_a_promotion(self) -> None:
        """What was published is refused from now on; the second of its chunks, which are alike, is gone as it goes."""
        if not (self.is_quiet() and self.may_promote):
            return
        p, _ = self.a_partition()
        flat = self.flat_line(2)
        for one in flat:
            self.send(one, p)
        self.all_there_is()
        end = self.bench.log.partitions[Partition(p)].end
        if (shown := self.refused_and_shown(self.id_of(flat[0]), p, end - 2)) is not None:
            self.written_anew(p, cut=end - 1, until=end)
            self.launch_promotion(shown.plan.plan_id, far=True)

    def refused_and_shown(self, waveform_id: str, p: int, start: int) -> PromotionPreview | None:
        """What is published, and read from this offset on, is refused from now on; None where it is not published."""
        if waveform_id not in {row.waveform_id for _, row in self.bench.tables.rows}:
            return None
        self.failing.add(waveform_id)
        self.history.append(GateSays(waveform_id))
        end = self.bench.log.partitions[Partition(p)].end
        return self.show_of(VerifyRequest(ranges=(OffsetRange(Partition(p), Offset(start), Offset(end)),)))

    def published_now(self) -> tuple[Letter, int, int]:
        """One waveform of two chunks is sent and published: the second, its partition, and where the first lies."""
        p, at = self.a_partition()
        (both,) = self.sound_ones(1, 2)
        start = at.end
        for one in both:
            self.send(one, p)
        self.all_there_is()
        return both[1], p, start

    def published_and_shown(self) -> tuple[Letter, PromotionPreview | None]:
        one, p, start = self.published_now()
        return one, self.refused_and_shown(self.id_of(one), p, start)

    def another_truth_is_skipped_before_a_promotion(self) -> None:
        if not (self.is_quiet() and self.may_promote):
            return
        one, p, start = self.published_now()
        self.send(self.another(one), p)
        self.start_rewind(Target("latest"), True, far=True)
        if (shown := self.refused_and_shown(self.id_of(one), p, start)) is not None:
            self.launch_promotion(shown.plan.plan_id, far=True)

    def what_was_taken_out_is_discarded_and_taken_back(self) -> None:
        if not (self.is_quiet() and self.may_promote):
            return
        one, shown = self.published_and_shown()
        if shown is not None:
            done = self.launch_promotion(shown.plan.plan_id, far=True)
            self.launch_decision(HeldAction.DISCARD, Selection(ids=(self.id_of(one),)), far=True)
            self.take_back(done, far=True)

    def another_truth_comes_under_a_promotion(self) -> None:
        if not (self.is_quiet() and self.may_promote):
            return
        one, shown = self.published_and_shown()
        if shown is not None:
            self.send(self.another(one))
            self.all_there_is()
            self.launch_promotion(shown.plan.plan_id, far=True)

    def what_was_published_is_no_chunk_by_another_definition(self) -> None:
        """It was read before a proof was asked for, and has none."""
        if not (self.is_quiet() and self.may_promote and self.asks_later):
            return
        p, at = self.a_partition()
        ((one,),) = self.sound_ones(1, 1)
        start = at.end
        self.send(one._replace(headers=tuple(h for h in one.headers if h[0] != "ws-mac")), p)
        self.all_there_is()
        self.ask_for_proof()
        if (shown := self.refused_and_shown(self.id_of(one), p, start)) is not None:
            self.launch_promotion(shown.plan.plan_id, far=True)

    # rows that somebody deletes

    def sound_ones(self, count: int, chunks: int) -> list[list[Letter]]:
        """Waveforms that no gate stops or refuses."""
        found = [self.new_waveform(chunks) for _ in range(3 * count)]
        return [w for w in found if self.id_of(w[0]) not in self.failing | self.spoiled][:count]

    def rebuilt(self) -> Steps:
        return self.start_rewind(Target("rebuilt"), True, far=True)

    def a_published_row_is_deleted_beside_one_that_the_history_lacks(self) -> None:
        """A batch dies right after its commit; somebody deletes what an earlier one has published, and the head."""
        if not self.is_quiet():
            return
        first, *more = self.sound_ones(4, 1)
        self.send(first[0])
        self.all_there_is()
        for (one,) in more:
            self.send(one)
        dies = self.launch("ingest", partial(self.batch, self.stream, PlanRequest()), now=0)
        self.to_a_commit(dies)
        dies.advance()
        dies.kill()
        self.settle(dies)
        if self.bench.tables.delete_published({self.id_of(first[0])}):
            self.bench.tables.expire_head()
            self.rebuilt()

    def parked_wave(self) -> str | None:
        """A waveform that is parked; its first chunk was held before, as open."""
        found = self.sound_ones(1, 2)
        if not found or not self.is_quiet():
            return None
        first, last = found[0]
        self.send(first)
        self.all_there_is()
        self.send(last)
        self.all_there_is(park=True)
        mine = self.held_of(self.id_of(first))
        return self.id_of(first) if any(r.held.reason is Reason.PARKED for r in mine) else None

    def held_of(self, waveform_id: str) -> list[StoredHeld]:
        return [r for r in self.bench.tables.held_rows() if r.held.chunk.waveform_id == waveform_id]

    def delete_held(self, waveform_id: str, reason: Reason, *, expire: bool = False) -> bool:
        def goes(row: StoredHeld) -> bool:
            return row.held.chunk.waveform_id == waveform_id and row.held.reason is reason

        return self.bench.tables.delete_held(goes, expire=expire)

    def discards_are_deleted(self) -> None:
        """Somebody lets a waveform go; another tool deletes the rows that say so, and the head."""
        waveform_id = self.parked_wave()
        if waveform_id is not None:
            self.launch_decision(HeldAction.DISCARD, Selection(ids=(waveform_id,)), far=True)
            if self.delete_held(waveform_id, Reason.DISCARDED):
                self.bench.tables.expire_head()
                self.rebuilt()

    def discards_are_deleted_with_what_the_head_names(self) -> None:
        """The same, and not the head: the snapshot of the held table that it names is gone."""
        waveform_id = self.parked_wave()
        if waveform_id is not None:
            self.launch_decision(HeldAction.DISCARD, Selection(ids=(waveform_id,)), far=True)
            if self.delete_held(waveform_id, Reason.DISCARDED, expire=True):
                self.rebuilt()

    def rows_with_bytes_are_deleted(self) -> None:
        """Another tool deletes the rows that have a chunk's bytes, and not the newer one without; then the head. What
        the log still has is read again."""
        waveform_id = self.parked_wave()
        if waveform_id is not None and self.delete_held(waveform_id, Reason.OPEN):
            self.bench.tables.expire_head()
            self.rebuilt()
            self.start_rewind(Target("earliest"), True, far=True)
