"""What the steps of a stream's batches act through, as a protocol: the log, the tables, and the batch's own files.

The steps know this alone. `Deployment` makes the real edges; those of the tests are in memory, and carry a batch
through the very same steps, where every interleaving and every crash can be played.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Protocol

from wavestitch.batch.publish import Staging
from wavestitch.batch.reassemble import Landed, ToStitch
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.batch_size import ReaderStop
from wavestitch.contracts.decision import Stitched
from wavestitch.contracts.parts_index import PartsIndex
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.ports import Log, Tables
from wavestitch.contracts.position import AtGate
from wavestitch.contracts.preview_answer import Rejected
from wavestitch.contracts.quantities import EpochMs, Seconds
from wavestitch.contracts.receipt import Receipt
from wavestitch.contracts.rewind_preview import RewindPreview
from wavestitch.contracts.seams import Parts
from wavestitch.contracts.stream import Stream
from wavestitch.contracts.verdict import Verdict

Progress = Callable[[int, int], None]
"""Told sums so far: records, bytes."""
Say = Callable[[str], None]


class Stitching(Protocol):
    """What was stitched, as it lies staged."""

    @property
    def outcomes(self) -> Mapping[str, Stitched]:
        """By waveform id, all that were tried."""

    def staging(self, landed: Landed) -> Staging:
        """What the batch has to commit."""


class Edges(Protocol):
    """The edges of one stream. Nothing is opened before it is used. Each method is one effect, or none."""

    @property
    def name(self) -> str:
        """The stream's."""

    @property
    def stream(self) -> Stream:
        """The definition as it stands now; a plan has its own."""

    @property
    def log(self) -> Log: ...

    @property
    def tables(self) -> Tables: ...

    @property
    def code_version(self) -> str: ...

    def clock_ms(self) -> EpochMs: ...

    def seconds(self) -> float:
        """Of a clock that only goes forward, to measure with."""

    def nonce(self) -> str: ...

    def kept(self, decision: str) -> BatchRow | None:
        """The history row that a batch kept for a decision before it committed it; see `Staging.keep`."""

    # the files of one batch

    def begin(self, plan: Plan) -> None:
        """Keep the plan, and a place for what its steps leave. Raises `Transient` where there is no room for it."""

    def plan(self, plan_id: str, *, committed: bool = False) -> Plan:
        """The plan as it was made. Raises `BadInput` where there is none, and `Fenced` where it was abandoned, unless
        it was `committed` all the same."""

    def keep_receipt(self, receipt: Receipt) -> str:
        """Returns the name under which `landed` finds it."""

    def landed(self, plan: Plan, receipts: Sequence[str]) -> Landed:
        """What was read, proven against its receipts."""

    def stitching(self, plan: Plan, report: str | None) -> Stitching:
        """What `stitch` left under this name."""

    def keep_verdict(self, plan: Plan, verdict: Verdict) -> str: ...

    def verdict(self, plan: Plan, name: str) -> Verdict: ...

    def close_gate(self, plan: Plan, *, report: str | None, verdict: str) -> None:
        """Keep that the gate closed on what these names hold, and let the head name a batch that bars others: no ingest
        goes past it until somebody has decided about it."""

    def closed_gates(self) -> Sequence[Plan]:
        """The plans of this stream whose gate closed, those aside that were abandoned; some may be finished since."""

    def named_at_gate(self) -> Sequence[AtGate]:
        """The batches that the newest head names at their closed gate, wherever their folders are."""

    def stopped(self, plan: Plan) -> Set[str] | None:
        """The waveforms that this plan's closed gate kept from being published; None where nobody can say any more."""

    def reader_stops(self) -> Sequence[ReaderStop]:
        """What readers of this stream had seen that stopped at their budget."""

    def keep_parts(self, parts: Parts, index: PartsIndex) -> None:
        """Keep what a batch of a backfill has read of waveforms that it does not publish, and which batches up to it
        have kept such."""

    def parts(self, plan_id: str) -> Parts:
        """All that was kept of it, by whichever execution. Raises `BadInput` where nothing was."""

    def parts_index(self, plan_id: str) -> PartsIndex:
        """The same, of which batches kept something."""

    def free(self, plan_id: str) -> int:
        """Let the landed payload go; returns bytes."""

    def tell_metrics(self) -> None:
        """Let whoever draws and warns know how the stream stands now. Never raises, and takes no longer than the
        settings allow."""

    # what people decide about

    def keep_preview(self, preview: RewindPreview) -> None:
        """Under its id, once and for all."""

    def preview(self, preview_id: str) -> RewindPreview:
        """The same. Raises `BadInput` where there is none, `Altered` where it is not as it was kept."""

    def keep_decision(self, plan: Plan) -> None:
        """A decision about what is held, as it was previewed; under its plan's id, once and for all."""

    def decision(self, plan_id: str) -> Plan:
        """The same. Raises `BadInput` where there is none, `Altered` where it is not as it was kept."""

    @property
    def previews_hold(self) -> Seconds:
        """How long after it was made a preview may be done."""

    def reject(self, preview_id: str, said: Rejected) -> None:
        """Keep that nobody does it any more; what was kept first stands."""

    def rejected(self, preview_id: str) -> Rejected | None:
        """Whether somebody has. Raises `Altered` where nobody can read what was kept."""

    # what moves data

    def read(self, plan: Plan, units: Sequence[int], *, progress: Progress) -> list[Receipt]:
        """Read units of work into the landing."""

    def stitch(self, plan: Plan, landed: Landed, what: ToStitch, *, say: Say) -> str | None:
        """Stitch these waveforms; returns the name of a report, None where there was nothing to stitch."""

    def judge(self, plan: Plan, stitching: Stitching) -> Verdict:
        """Ask the gate about what was stitched whole."""

    def findings(self, plan_id: str) -> str:
        """Where people see what the gate found."""
