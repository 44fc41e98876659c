"""The producers of a random history: whole waveforms, scattered ones, late, repeated, broken and conflicting chunks.

Draws from the history's own randomness; knows nothing of batches.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from tests.builders.records import Letter, Lie, cut, letter, lied, metadata
from tests.domain.forging import forged
from tests.fakes.batch import Bench
from tests.fakes.fake_log import FakeLog
from tests.fakes.kept_partition import Visibility
from tests.histories.history import History
from tests.histories.promotion_events import GateSays
from tests.histories.sealing import sealed
from wavestitch.contracts.chunk_proof import NO_PROOF, ChunkProof
from wavestitch.contracts.quantities import Partition

START_MS = 1_700_000_000_000
SECRET = b"sixteen bytes or more"


class Producing:
    """`waves`: all that were cut, by number; `late`: chunks that were not sent yet; `failing`: refused by the gate, for
    ever. `ops` counts what was done. In some histories chunks carry a MAC, and whoever has not the key makes none."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.ops: Counter[str] = Counter()
        self.transactional = self.random.random() < 0.7
        self.mac = self.random.random() < 0.2
        proof = ChunkProof("mac", SECRET, "waves") if self.mac else NO_PROOF
        self.bench = Bench(FakeLog(partitions=self.random.randint(1, 3)), proof=proof)
        self.history = History()
        self.clock_ms = START_MS
        self.waves: list[list[Letter]] = []
        self.sent: list[Letter] = []
        self.late: list[Letter] = []
        self.failing: set[str] = set()

    def a_partition(self) -> tuple[int, Any]:
        return self.random.choice(list(self.bench.log.partitions.items()))

    def send(self, what: Letter, to: int | None = None, seen: Visibility = Visibility.COMMITTED) -> None:
        partition = self.random.randrange(len(self.bench.log.partitions)) if to is None else to
        self.bench.log.append(Partition(partition), self.clock_ms, *what, seen)
        self.sent.append(what)

    def ours(self, one: Letter) -> Letter:
        """As somebody makes it who has the stream's key."""
        return sealed(one, SECRET, "waves") if self.mac else one

    def theirs(self, one: Letter) -> Letter:
        """As somebody makes it who has not: without a proof, or with one that is none."""
        false = (*one.headers, ("ws-mac", b"0" * 64))
        return one._replace(headers=false) if self.mac and self.random.random() < 0.7 else one

    @staticmethod
    def id_of(one: Letter) -> str:
        return (one.key if one.key is not None else dict(one.headers).get("ws-id") or b"").decode()

    def produce(self) -> None:
        """A new waveform: in one partition or scattered, in order or not, some chunks late."""
        self.ops["waveform"] += 1
        letters = self.new_waveform(self.random.randint(1, 4))
        if self.random.random() < 0.15:
            self.ops["count taught later"] += 1
            self.late.append(letters[-1])
            letters[-1] = self.without_count(letters[-1])
            if len(letters) > 1:
                self.late.append(letters.pop(0))
        if self.random.random() < 0.4:
            self.random.shuffle(letters)
        to = self.a_partition()[0] if self.random.random() < 0.6 else None
        for one in letters:
            if self.random.random() < 0.12:
                self.late.append(one)
            else:
                self.send(one, to)

    def new_waveform(self, chunks: int) -> list[Letter]:
        number = len(self.waves) + 1
        waveform_id = f"w{number}"
        odd = self.random.randrange(20)
        if odd == 1:
            self.failing.add(waveform_id)
            self.history.append(GateSays(waveform_id))
        meta = metadata(self.clock_ms if odd != 3 else 0, **({"sample_count": 99} if odd == 2 else {}))
        values = [number.to_bytes(2) * (1 + seq % 2) + bytes([seq, odd]) for seq in range(chunks)]
        digest, keyed = "0" * 32 if odd == 4 else None, self.random.random() < 0.7
        letters = cut(waveform_id, values, meta=meta, live=odd % 2 == 0, digest=digest, keyed=keyed)
        if 5 <= odd <= 8:
            # A producer that is not ours: the digest is optional.
            letters = [one._replace(headers=tuple(h for h in one.headers if h[0] != "ws-digest")) for one in letters]
        letters = [self.ours(one) for one in letters]
        self.ops["chunks with a MAC"] += self.mac * len(letters)
        self.waves.append(letters)
        return list(letters)

    def flat_line(self, chunks: int) -> list[Letter]:
        """A waveform of which one chunk is as the other."""
        self.waves.append(
            [self.ours(one) for one in cut(f"w{len(self.waves) + 1}", [b"\0\0"] * chunks, meta=metadata(self.clock_ms))]
        )
        return list(self.waves[-1])

    def without_count(self, one: Letter) -> Letter:
        """The same chunk of a recording that does not know yet how long it will be."""
        h = dict(one.headers)
        raw_id, seq, meta = one.key or h["ws-id"] or b"", int(h["ws-seq"] or b""), h["ws-meta"] or b""
        return self.ours(
            letter(raw_id.decode(), seq, one.value or b"", meta=meta, count=None, keyed=one.key is not None)
        )

    def send_late(self) -> None:
        if self.late:
            self.ops["late chunk"] += 1
            self.send(self.late.pop(self.random.randrange(len(self.late))))

    def repeat(self) -> None:
        self.ops["repeated chunk"] += bool(self.sent)
        if self.sent:
            self.send(self.random.choice(self.sent))

    def lie(self) -> None:
        if self.sent:
            self.ops["bad record"] += 1
            to = self.a_partition()[0]
            self.bench.log.append(
                Partition(to), self.clock_ms, *lied(self.random.choice(self.sent), self.random.choice(list(Lie)))
            )

    def junk_flood(self) -> None:
        """A producer that is pointed at the wrong topic."""
        self.ops["junk flood"] += 1
        to = self.a_partition()[0]
        for n in range(self.random.choice([5, 20, 60])):
            self.bench.log.append(Partition(to), self.clock_ms, None, (), b"{} of another job" + n.to_bytes(2))

    def stranger(self) -> None:
        """Valid records again with what no seal binds changed: other headers, the record time, the partition."""
        if self.sent:
            self.ops["stranger's repeat"] += 1
            one = self.random.choice(self.sent)
            more = self.random.choice([(), (("x-trace", b"1"),), (("ws-mac", b"f" * 64),), (("ws-digest", b"0" * 32),)])
            known = {name for name, _ in one.headers}
            again = one._replace(headers=(*one.headers, *(h for h in more if h[0] not in known)))
            at = self.random.choice([1, self.clock_ms, self.clock_ms + 10**9, 10**15])
            self.bench.log.append(Partition(self.a_partition()[0]), at, *again)

    def contradict(self) -> None:
        """A valid chunk that cannot stand beside the others of its waveform."""
        self.ops["conflicting chunk"] += 1
        number = self.random.randrange(len(self.waves))
        known = self.waves[number]
        meta, seq = dict(known[0].headers)["ws-meta"] or b"", self.random.randrange(4)
        value, count = known[min(seq, len(known) - 1)].value or b"", None
        match self.random.randrange(4):
            case 3:
                self.ops["forged chunk"] += 1
                self.send(forged(known[min(seq, len(known) - 1)]))
                return
            case 0:
                value = b"\xff\xfe" + value[2:]
            case 1:
                meta = metadata(self.clock_ms, note="another")
            case _:
                count = 1 + seq + self.random.randrange(3)
        other = letter(f"w{number + 1}", seq, value, meta=meta, count=count)
        self.send(self.ours(other) if self.random.random() < 0.7 else self.theirs(other))

    def markers(self) -> None:
        """Many producers end their transactions at once, as a job of that many tasks does at its checkpoint."""
        if self.transactional:
            self.ops["markers"] += 1
            count = self.random.choice([1, 2, 3, 64, 65, 128, 700, 5000])
            outcome = self.random.choice([Visibility.COMMITTED, Visibility.ABORTED])
            self.bench.log.mark(Partition(self.a_partition()[0]), outcome, self.clock_ms, count)

    def transaction(self) -> None:
        """Begin one, or end the open one with its markers."""
        log = self.bench.log
        if log.open_offsets():
            outcome = self.random.choice([Visibility.COMMITTED, Visibility.ABORTED])
            self.ops["transaction " + outcome.value] += 1
            log.end_transactions(outcome, self.clock_ms)
        elif self.transactional:
            self.ops["transaction begun"] += 1
            for one in self.new_waveform(self.random.randint(1, 3)):
                self.send(one, None, Visibility.OPEN)
