"""Where somebody puts a stream on purpose: with Kafka's own tools, of more than one partition, or by a rewind. Judges
nothing.
"""

from __future__ import annotations

from tests.histories.in_between import InBetween
from wavestitch.batch.request import rewind_target
from wavestitch.batch.rewind import Target
from wavestitch.contracts.quantities import EpochMs, Offset, Partition


class Resetting(InBetween):
    def two_were_read(self) -> bool:
        """Of partitions 0 and 1 something was read that the log still has."""
        log = self.bench.log
        while len(log.partitions) < 2:
            log.add_partition()
        for p in (0, 1):
            for _ in range(3):
                self.send(self.new_waveform(1)[0], p)
        self.all_there_is()
        return all(log.partitions[Partition(p)].log_start + 1 < self.stands(p) for p in (0, 1))

    def one_back(self, p: int) -> None:
        self.bench.log.reset_group(Partition(p), Offset(self.stands(p) - 1))

    def one_is_reset_and_another_one_rewound(self) -> None:
        if self.is_quiet() and self.two_were_read():
            self.one_back(1)
            self.start_rewind(Target(offsets={Partition(0): Offset(self.stands(0) - 1)}), True, far=True)

    def two_are_reset(self) -> None:
        if self.is_quiet() and self.two_were_read():
            self.one_back(0)
            self.one_back(1)
            self.all_there_is()

    # rewinds

    def three_were_read(self) -> int:
        """Of one partition, each by a batch of its own, with some time in between; which partition."""
        p, _ = self.a_partition()
        for _ in range(3):
            self.clock_ms += 60_000
            self.send(self.new_waveform(1)[0], p)
            self.all_there_is()
        return p

    def rewound_to_a_time(self) -> None:
        if self.is_quiet():
            self.three_were_read()
            self.start_rewind(Target(time_ms=EpochMs(self.clock_ms - 90_000)), True, far=True)

    def rewound_to_the_group(self) -> None:
        """Which somebody had reset."""
        if self.is_quiet():
            p = self.three_were_read()
            if self.stands(p) > self.bench.log.partitions[Partition(p)].log_start:
                self.one_back(p)
                self.start_rewind(Target("group"), True, far=True)

    def rewound_to_before(self) -> None:
        if self.is_quiet():
            self.three_were_read()
            self.start_rewind(Target("previous"), True, far=True)

    def one_is_rewound_to_its_end(self) -> None:
        if self.is_quiet():
            p = self.three_were_read()
            self.send(self.new_waveform(1)[0], p)
            self.start_rewind(rewind_target(f"{p}:latest"), True, far=True)
