"""What operators decide, on purpose: about copies of one waveform, and what comes after that; and what nobody has a
reason to refuse. Judges nothing.
"""

from __future__ import annotations

from functools import partial

from tests.builders.ranges import span
from tests.builders.records import Letter
from tests.fakes.kept_partition import Visibility
from tests.histories.events import Undone, Unhindered
from tests.histories.left_unread import FAR
from tests.histories.resetting import Resetting
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.rewind import Target
from wavestitch.batch.verify_request import VerifyRequest
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stream import Limits


class DecidedOnPurpose(Resetting):
    def discarded_copy_comes_again(self) -> None:
        """Beside a published waveform a copy that contradicts it is discarded, and sent once more."""
        found = self.sound_ones(1, 1)
        if not found or not self.is_quiet():
            return
        one = found[0][0]
        other, wanted = self.another(one), Selection(ids=(self.id_of(one),))
        self.send(one)
        self.all_there_is()
        self.send(other)
        self.all_there_is()
        self.launch_decision(HeldAction.DISCARD, wanted, far=True)
        self.send(other)
        self.all_there_is()

    def picked_and_completed(self) -> None:
        """Of two copies of a first chunk one is picked, then the last one comes."""
        found = self.sound_ones(1, 2)
        if not found or not self.is_quiet():
            return
        first, last = found[0]
        self.send(first)
        self.send(self.another(first))
        self.all_there_is()
        self.launch_decision(HeldAction.PICK, Selection(ids=(self.id_of(first),)), far=True, pick="first")
        self.send(last)
        self.all_there_is()

    def nothing_speaks_against(self) -> str:
        """The run that comes. Its name."""
        self.history.append(Unhindered(name := f"run-{self.launched + 1}"))
        return name

    def what_nobody_has_a_reason_to_refuse(self) -> None:
        """What was sent, read, discarded or moved just now, in a quiet world."""
        if not self.is_quiet():
            return
        p, at = self.a_partition()
        start, self.clock_ms = at.end, self.clock_ms + FAR
        found = self.sound_ones(2, 2)
        if len(found) < 2:
            return
        both, (first, _) = found
        for one in (*both, first):
            self.send(one, p)
        self.all_there_is()
        if self.stands(p) == at.end:
            self._moved_and_read(p, start)
            self._decided_about(first)

    def _moved_and_read(self, p: int, start: int) -> None:
        if self.start_rewind(Target(offsets={Partition(p): Offset(start)}), True, far=True).error is None:
            of = self.bench.tables.snapshots[-1].sequence
            self.history.append(Undone(self.nothing_speaks_against(), of, "", True))
            self.launch("undo", partial(self.undone, of, None, True), far=True)
        if not any(Visibility.GONE in at.seen for at in self.bench.log.partitions.values()):
            # It looks as far back as max_clock_skew says, and what the log has lost there it refuses by name.
            self.nothing_speaks_against()
            self.backfilled()
        limits = self.stream.limits.model_copy(update={"max_batch_bytes": Limits().max_batch_bytes})
        stream = self.stream.model_copy(update={"limits": limits})
        logs = self.bench.log.partitions.items()
        there = tuple(span(p, at.log_start, self.stands(p)) for p, at in logs if at.log_start < self.stands(p))
        self.nothing_speaks_against()
        self.launch("verify", partial(self.verified, stream, VerifyRequest(ranges=there)), far=True)

    def _decided_about(self, first: Letter) -> None:
        wanted = Selection(ids=(self.id_of(first),))
        for action in (HeldAction.DISCARD, HeldAction.RESTORE):
            self.nothing_speaks_against()
            self.launch_decision(action, wanted, far=True)
        self.send(self.another(first))
        self.all_there_is()
        if any(r.held.reason is Reason.CONFLICT for r in self.held_of(self.id_of(first))):
            self.nothing_speaks_against()
            self.launch_decision(HeldAction.PICK, wanted, far=True, pick="first")
