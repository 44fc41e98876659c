"""What is held and lies in the log no more, done on purpose, and somebody verifies where it lay. Judges nothing."""

from __future__ import annotations

from tests.builders.ranges import span
from tests.histories.decided_on_purpose import DecidedOnPurpose
from wavestitch.batch.rewind import Target
from wavestitch.batch.verify_request import VerifyRequest
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.reasons import Reason


class VerifiedApart(DecidedOnPurpose):
    def all_verified(self, p: int, start: int) -> None:
        end = self.bench.log.partitions[Partition(p)].end
        self.verify_of(self.stream, VerifyRequest(ranges=(span(p, start, end),)))

    def held_and_taken(self) -> None:
        """The first chunk of a waveform is held; retention takes its record."""
        if self.is_quiet():
            p, at = self.a_partition()
            start = at.end
            self.send(self.new_waveform(2)[0], p)
            self.all_there_is()
            self.bench.log.retain_from(Partition(p), Offset(at.end))
            self.all_verified(p, start)

    def held_and_written_anew(self) -> None:
        """The first chunk of a waveform is held; an election cuts it off, and another one comes there."""
        if self.is_quiet():
            p, at = self.a_partition()
            start = at.end
            self.send(self.new_waveform(2)[0], p)
            self.all_there_is()
            self.written_anew(p, cut=start, until=start + 1)
            self.all_verified(p, start)

    def held_without_bytes_and_taken(self) -> None:
        """Another tool deletes the rows that have a chunk's bytes, and the head; somebody goes back to read it again,
        and retention is faster. Its producer sends it once more."""
        starts = {p: at.end for p, at in self.bench.log.partitions.items()}
        waveform_id = self.parked_wave()
        if waveform_id is None or not self.delete_held(waveform_id, Reason.OPEN):
            return
        self.bench.tables.expire_head()
        self.rebuilt()
        self.start_rewind(Target("earliest"), True, far=True)
        for p, start in starts.items():
            self.bench.log.retain_from(p, self.bench.log.partitions[p].end)
            if not self.bench.tables.headless:
                self.all_verified(p, start)
        self.send_again(waveform_id)
        self.all_there_is()
