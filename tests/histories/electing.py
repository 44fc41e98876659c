"""Elections that cut nothing off, in a random history: brokers are restarted all the time, so that a leader may have
written nothing before the next one leads. Of the histories that have them the draws are made apart. Judges nothing.
"""

from __future__ import annotations

import random

from tests.histories.putting_back import PuttingBack

SHARE, OFTEN = 0.3, 0.15
"""Of all histories so many have them; in those there is one after so many acts."""


class Electing(PuttingBack):
    """`of_leaders`: the randomness of elections, apart."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.of_leaders = random.Random(f"elected {seed}")
        self.has_elections = self.of_leaders.random() < SHARE

    def something_more(self) -> None:
        super().something_more()
        if self.has_elections and self.of_leaders.random() < OFTEN:
            self.ops["elected"] += 1
            self.bench.log.restart(self.of_leaders.choice(sorted(self.bench.log.partitions)))
