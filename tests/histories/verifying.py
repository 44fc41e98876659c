"""Who verifies, in a random history: ranges, batches, all that ingests have read, while a row of the table is altered,
deleted or doubled, and whatever became of the log before. What they are told is an event. Judges nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from tests.builders.ranges import span
from tests.fakes.fake_comparing import FakeComparing
from tests.fakes.fake_rows import PublishedRow
from tests.histories.backfilling import DEADLINE, Backfilling
from tests.histories.verify_events import Verified
from wavestitch.batch import verify
from wavestitch.batch.carry import Silent
from wavestitch.batch.verify_request import VerifyRequest
from wavestitch.contracts.stream import Limits, Stream

SHARE, OFTEN = 0.3, 0.08
"""Of all histories so many have verifications in them; in those one comes after so many acts."""


class Verifying(Backfilling):
    """`proving`: the randomness of verifications, apart."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.proving = random.Random(f"verifying {seed}")
        self.verifies = self.proving.random() < SHARE

    def something_more(self) -> None:
        super().something_more()
        if self.verifies and self.proving.random() < OFTEN:
            self.random, drawn = self.proving, self.random
            self.verify_a_range()
            self.random = drawn

    def verify_a_range(self) -> None:
        """In one go: what is compared with is one snapshot, and so is what the checker knows."""
        tables = self.bench.tables
        mine = bool(tables.snapshots) and tables.snapshots[-1].topic_id == self.bench.log.topic_id
        if self.busy or tables.headless or not mine:
            return
        if self.random.random() < 0.3:
            self.random.choice([self.retention, self.offset_lost])()
        stream = self.in_small_batches() if self.random.random() < 0.5 else self.stream
        # Where budgets are tiny it would be hundreds of batches.
        limits = stream.limits.model_copy(update={"max_batch_bytes": Limits().max_batch_bytes})
        stream = stream.model_copy(update={"limits": limits})
        self.verify_of(stream, self.a_range())

    def verify_of(self, stream: Stream, request: VerifyRequest) -> None:
        with self.in_one_go(), self.tampered() as changed:
            call = partial(self.verified, stream, request)
            run = self.launch("verify", call, far=True, deadline=DEADLINE)
        if run.error is None:
            done = run.result
            asked, read = (
                tuple((r.partition, r.start, r.end) for r in some) for some in (request.ranges or done.asked, done.read)
            )
            words = tuple((one.waveform_id, one.found.value) for one in done.waveforms)
            self.ops.update(f"verified: {word}" for _, word in words)
            self.history.append(Verified(run.name, asked, read, words, **changed))

    def verified(self, stream: Stream, request: VerifyRequest) -> verify.Verified:
        edges = FakeComparing(self.bench, stream, self.clock_ms, self.carrying())
        return verify.verify_range(edges, request, watcher=Silent())

    def a_range(self) -> VerifyRequest:
        p, at = self.a_partition()
        plans = [row.plan_id for row in self.bench.tables.history if row.kind == "ingest"]
        start = self.random.choice([0, 0, self.random.randint(0, at.end)])
        ranges = (span(p, start, self.random.randint(start, at.end)),)
        asked = [VerifyRequest(), VerifyRequest(ranges=ranges), VerifyRequest(ranges=ranges)]
        return self.random.choice([*asked, *(VerifyRequest(batch=plan_id) for plan_id in plans[-1:])])

    @contextmanager
    def tampered(self) -> Iterator[dict[str, tuple[str, ...]]]:
        """Somebody changes a row of the table, and puts it right once it was found out; readers look at no such row."""
        tables, was = self.bench.tables, list(self.bench.tables.rows)
        found: dict[str, tuple[str, ...]] = {}
        rows: list[PublishedRow] = []
        numbers: list[int] = []
        for sequence, row in was:
            how = self.random.choice(["altered", "cut", "deleted", "doubled"]) if self.random.random() < 0.35 else ""
            if how:
                found[how] = (*found.get(how, ()), row.waveform_id)
            other = replace(row, samples=row.samples[:-1] + bytes([row.samples[-1] ^ 1]))
            less = replace(row, chunks=row.chunks[:-1], topic_ids=row.topic_ids[:-1])
            rows += {"": [row], "altered": [other], "cut": [less], "deleted": [], "doubled": [row, row]}[how]
            numbers += [sequence] * (len(rows) - len(numbers))
        tables.rows = list(zip(numbers, rows, strict=True))
        with self.witness.looking_away(tables.rows):
            yield found
            tables.rows = was
