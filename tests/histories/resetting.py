"""What somebody sets the group to with Kafka's own tools, of more than one partition, on purpose. Judges nothing."""

from __future__ import annotations

from tests.histories.in_between import InBetween
from wavestitch.batch.rewind import Target
from wavestitch.contracts.quantities import Offset, Partition


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
