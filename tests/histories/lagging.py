"""Brokers that have not heard of partitions which were added, in a random history: whoever asks one of them is shown an
older topic. Of the histories that have them the draws are made apart. Judges nothing.
"""

from __future__ import annotations

import random

from tests.histories.electing import Electing
from wavestitch.batch.rewind import Target
from wavestitch.contracts.quantities import Partition

SHARE, OFTEN = 0.5, 0.2
"""Of all histories so many have them; in those one answers after so many acts, once there is anything to be late with.
"""


class Lagging(Electing):
    """`of_views`: the randomness of such brokers, apart."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.of_views = random.Random(f"older views {seed}")
        self.has_old_views = self.of_views.random() < SHARE

    def something_more(self) -> None:
        super().something_more()
        log = self.bench.log
        grown = len(log.partitions) > log.made_with
        if grown and self.swarm.on and self.has_old_views and self.of_views.random() < OFTEN:
            self.ops["a broker lags"] += 1
            log.lag(self.of_views.choice([1, 2, 6]), shows=self.of_views.randrange(log.made_with, len(log.partitions)))

    def a_backfill_is_planned_by_a_broker_that_lags(self) -> None:
        """A partition is added and ingested, what comes in it is skipped, and then backfilled."""
        log = self.bench.log
        log.add_partition()
        added = Partition(len(log.partitions) - 1)
        if self.busy or self.all_there_is().error is not None:
            return
        for one in self.new_waveform(2):
            self.send(one, added)
        if self.start_rewind(Target("latest"), True, far=True).error is None:
            log.lag(1, shows=added)
            self.chain(far=True)
