"""The producers' half of the protocol machine: what is sent, well or badly, while runs are under way."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.builders.records import Letter, Lie, cut, letter, lied, metadata
from tests.fakes.batch import Bench
from tests.fakes.kept_partition import Visibility
from wavestitch.contracts.quantities import Partition

START_MS = 1_700_000_000_000
pick = st.integers(0, 999)
odd_ones = st.integers(0, 12)


class ProducingMachine(RuleBasedStateMachine):
    """`failing` waveforms are refused by an expectation; where `spoiled` ones are half of a batch, its gate closes.
    `late` chunks were cut and not sent yet."""

    bench: Bench

    def __init__(self) -> None:
        super().__init__()
        self.clock_ms = START_MS
        self.late: list[Letter] = []
        self.sent: list[Letter] = []
        self.failing: set[str] = set()
        self.spoiled: set[str] = set()
        self.waveforms = 0

    def send(self, what: Letter, to: int, seen: Visibility = Visibility.COMMITTED) -> None:
        log = self.bench.log
        log.append(Partition(to % len(log.partitions)), self.clock_ms, *what, seen)
        self.sent.append(what)

    def new_waveform(self, chunks: int, odd: int, keyed: bool = True) -> list[Letter]:
        """A new waveform; some odd ones break their word or will be refused by the gate."""
        self.waveforms += 1
        waveform_id = f"w{self.waveforms}"
        values = [bytes([self.waveforms % 256, seq]) for seq in range(chunks)]
        if odd == 1:
            self.failing.add(waveform_id)
        if odd == 7:
            self.spoiled.add(waveform_id)
        meta = metadata(self.clock_ms if odd != 3 else 0, **({"sample_count": 99} if odd == 2 else {}))
        digest = "0" * 32 if odd == 4 else None
        return cut(waveform_id, values, meta=meta, live=odd % 2 == 0, digest=digest, keyed=keyed)

    @rule(chunks=st.integers(1, 3), to=pick, odd=odd_ones, keyed=st.booleans())
    def produce_sticky(self, chunks: int, to: int, odd: int, keyed: bool) -> None:
        for one in self.new_waveform(chunks, odd, keyed):
            self.send(one, to)

    @rule(order=st.permutations(range(3)), to=st.tuples(pick, pick, pick), withhold=st.integers(0, 3), odd=odd_ones)
    def produce_scattered(self, order: list[int], to: tuple[int, int, int], withhold: int, odd: int) -> None:
        letters = self.new_waveform(3, odd)
        for n, seq in enumerate(order):
            if n < withhold:
                self.late.append(letters[seq])
            else:
                self.send(letters[seq], to[n])

    @rule(
        what=st.sampled_from(["late", "late", "repeat", "lie", "contradict", "contradict", "transaction", "markers"]),
        which=pick,
        to=pick,
        how=pick,
    )
    def produce_oddly(self, what: str, which: int, to: int, how: int) -> None:
        log = self.bench.log
        if what == "late" and self.late:
            self.send(self.late.pop(which % len(self.late)), to)
        elif what == "repeat":
            self.send(self.sent[which % len(self.sent)], to)
        elif what == "lie":
            about = self.sent[which % len(self.sent)]
            log.append(Partition(to % len(log.partitions)), self.clock_ms, *lied(about, list(Lie)[how % len(Lie)]))
        elif what == "contradict":
            self.contradict(which, to, how)
        elif what == "transaction" and log.open_offsets():
            outcome = Visibility.COMMITTED if how % 2 else Visibility.ABORTED
            log.end_transactions(outcome, self.clock_ms)
        elif what == "markers":
            outcome = Visibility.COMMITTED if how % 2 else Visibility.ABORTED
            log.mark(Partition(to % len(log.partitions)), outcome, self.clock_ms, (1, 2, 65, 800)[how // 2 % 4])
        elif what == "transaction":
            for one in self.new_waveform(1 + how % 2, 0):
                self.send(one, to, Visibility.OPEN)

    def contradict(self, which: int, to: int, how: int) -> None:
        """A valid chunk that cannot belong to its waveform beside the others."""
        number, seq, what = which % self.waveforms + 1, how % 3, how // 3 % 3
        waveform_id = f"w{number}"
        known = [s for s in self.sent + self.late if (s.key or dict(s.headers)["ws-id"]) == waveform_id.encode()]
        meta, value, count = dict(known[0].headers)["ws-meta"] or b"", bytes([number % 256, seq]), None
        if what == 0:
            value = bytes([255 - number % 256, 7])
        elif what == 1:
            meta = metadata(self.clock_ms, note="another")
        else:
            count = 1 + seq + how // 9 % 3
        self.send(letter(waveform_id, seq, value, meta=meta, count=count), to)
