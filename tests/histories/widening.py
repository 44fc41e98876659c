"""Which histories have more in them than the rest, and when: of those the draws are made apart.

Whatever is added to the world would otherwise draw other histories for every seed, and a seeded bug that is met rarely
would have to be looked for anew. Judges nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from tests.fakes.batch import FakeEdges
from tests.fakes.fake_id_index import FakeIdIndex
from tests.fakes.fake_maintenance import maintain
from tests.histories.approving import Approving
from tests.histories.deciding import KEY
from tests.histories.events import Asks
from tests.histories.forking import Fork
from tests.histories.producing import SECRET
from wavestitch.contracts.chunk_proof import ChunkProof
from wavestitch.contracts.quantities import Partition

SHARE, OFTEN = 0.4, 0.12
"""Of all histories so many are wider; in those something more comes after so many acts."""

_AGAIN = 40
"""Copies that are sent again at once, at most: what was sent again is sent, too, and would double every time, until no
run could read the log within its deadline."""


class Widening(Approving):
    """`apart`: the randomness of what is added. `tight`: batches may take few bytes. `copy`: of the
    catalog, that somebody works on."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.apart = random.Random(f"wider {seed}")
        self.wider = self.apart.random() < SHARE
        self.asks_later = self.wider and not self.mac and self.apart.random() < 0.35
        if self.asks_later:
            self.mac = True
            self.witness.will_be_asked("mac", SECRET, "waves")
        self.copy: Fork | None = None
        self.tight = self.wider and self.apart.random() < 0.4
        if self.wider and self.apart.random() < 0.4:
            self.ops["an index of ids"] += 1
            self.bench.tables.index = FakeIdIndex()
        if self.tight:
            self.ops["small byte budget"] += 1
            self.set_limits(max_batch_bytes=self.apart.choice([900, 2000, 4000]))

    def something_more(self) -> None:
        """Perhaps; of what is rare there is a little of everything."""
        super().something_more()
        if not self.wider or self.apart.random() > (0.4 if self.copy is not None else OFTEN):
            return
        self.random, drawn = self.apart, self.random
        self.random.choice(self.more())()
        self.random = drawn
        if self.apart.random() < 0.5:
            self.copy_goes_on()

    def ask_for_proof(self) -> None:
        """The stream is declared to ask for a MAC; what is held was read when nobody asked. Its owner has sealed all
        along, and others have not."""
        if self.busy:
            return
        self.asks_later = False
        first, *rest = self.new_waveform(3)
        self.send(first._replace(headers=tuple(h for h in first.headers if h[0] != "ws-mac")))
        self.all_there_is()
        self.ops["proof asked for later"] += 1
        self.bench.proof = ChunkProof("mac", SECRET, "waves")
        if self.copy is not None:  # who works on the copy goes by the same definition
            self.copy.bench.proof = self.bench.proof
        self.stream = self.stream.model_copy(update={"proof": "mac", "proof_key": KEY})
        for history in (self.history, *([self.copy.history] if self.copy is not None else [])):
            history.append(Asks(True))
        for one in rest:
            self.send(one)
        for one in self.random.sample(self.sent, min(len(self.sent), 6)):
            self.send(one)

    def fork(self) -> None:
        """Somebody copies the catalog and works on both; or goes on with that, or stops it."""
        if self.copy is not None:
            self.copy_stops()
        elif self.bench.tables.snapshots and not (self.bench.tables.headless or self.forked):
            self.ops["forked"] += 1
            self.forked = True
            self.copy = Fork(self.bench, self.history, self.witness, under_way=self.runs, chance=self.apart)
            self.history.copies.append(self.copy.history)

    def copy_goes_on(self) -> None:
        if self.copy is not None:
            self.ops["copy goes on"] += 1
            self.copy.goes_on(self.stream, self.clock_ms, self.carrying())

    def copy_stops(self) -> None:
        if self.copy is not None:
            self.copy.stops()
            self.copy = None

    def more(self) -> list[Callable[[], None]]:
        return [
            self.given_up_while_it_publishes,
            self.gate_closes_while_another_publishes,
            self.second_copies,
            self.fork,
            *([self.ask_for_proof] * 4 if self.asks_later else []),
            *([self.maintain] * 3),
            self.contradicted_and_maintained,
            *([self.large_records] if self.tight else []),
            *([self.index_of_ids] * 9 if self.bench.tables.index is not None else []),
        ]

    def maintain(self) -> None:
        """Its run is one among the others: looks, is overtaken, dies, is begun again."""
        if not self.busy:
            edges = FakeEdges(self.bench, self.stream, self.clock_ms, self.carrying())
            self.launch("maintain", partial(maintain, edges, most=self.random.choice([1, 1, 3])))

    def contradicted_and_maintained(self) -> None:
        """Of what is published another copy comes, with other bytes; then maintenance looks at what is held."""
        published = {row.waveform_id for _, row in self.bench.tables.rows}
        known = [one for one in self.sent if self.id_of(one) in published]
        if known and not self.busy:
            self.ops["contradicted and maintained"] += 1
            self.send(self.another(self.random.choice(known)))
            self.all_there_is()
            edges = FakeEdges(self.bench, self.stream, self.clock_ms, self.carrying())
            self.launch("maintain", partial(maintain, edges, most=1), far=True)

    def index_of_ids(self) -> None:
        """What becomes of a cache: nothing that it says is proven by its being there."""
        index = self.bench.tables.index
        assert index is not None
        does = self.random.choice([index.vanishes, index.is_damaged, index.is_copied, index.is_put_back])
        if does == index.is_put_back and not index.has_a_copy:
            does = index.is_copied
        self.ops[f"index {does.__name__.replace('_', ' ')}"] += does()
        published = sorted({row.waveform_id for _, row in self.bench.tables.rows})
        if published and not self.busy:
            again = self.random.choice(published)
            for one in [one for one in self.sent if self.id_of(one) == again][:_AGAIN]:
                self.send(one)
            self.all_there_is()

    def large_records(self) -> None:
        """Of which a batch takes far fewer than its estimate says."""
        self.ops["large records"] += 1
        p = self.a_partition()[0]
        for n in range(self.random.choice([2, 9, 30])):
            large = bytes([n]) * self.random.choice([300, 800, 3000])
            self.bench.log.append(Partition(p), self.clock_ms, None, (), large)
