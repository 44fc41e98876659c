"""What can be seen at the edges of a stream, event by event: of the log, the group, runs, tables and people.

Frozen values of plain types, which say what was done, never what it means; `history` keeps them in their order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.histories.approval_events import Approved, Declared, Shown
from tests.histories.group_events import OnReset
from tests.histories.interval_events import Backfilled
from tests.histories.late_events import GivenUp, Landed, Lands
from tests.histories.maintenance_events import Cleared, JunkGoes, LeftBehind, StageBegun
from tests.histories.promotion_events import GateSays, Offered, Replaced, Spoils
from tests.histories.reading_events import Loaded, Named, Opened
from tests.histories.table_events import CatalogSetBack, Deleted, Forgotten, HistoryLost, TakenOut
from tests.histories.verify_events import Verified

Coordinate = tuple[str, int, int]
"""Topic id, partition, offset."""
Where = tuple[str, int]
"""Topic id and partition."""


@dataclass(frozen=True, slots=True)
class Produced:
    """A record took its offset. `seen`: committed, open (in a transaction that has not ended) or marker. `proven`: what
    the stream demands of its chunks beside the CRC is there, and right. `epoch`: the leader epoch of then."""

    topic_id: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    value: bytes | None
    seen: str
    proven: bool = True
    epoch: int = 0

    @property
    def coordinate(self) -> Coordinate:
        return self.topic_id, self.partition, self.offset


@dataclass(frozen=True, slots=True)
class Settled:
    """A transaction ended: its records are committed or aborted."""

    topic_id: str
    partition: int
    offsets: tuple[int, ...]
    outcome: str


@dataclass(frozen=True, slots=True)
class TopicMade:
    """The topic was made (again): from here on its name means this id."""

    topic_id: str


@dataclass(frozen=True, slots=True)
class Retained:
    """The partition begins at `log_start` now."""

    topic_id: str
    partition: int
    log_start: int


@dataclass(frozen=True, slots=True)
class Truncated:
    """An unclean election cut the partition off at `end`: what lay behind is gone, and its offsets come again.
    `backup`: its disk was put back instead, so that leader epochs come again, too."""

    topic_id: str
    partition: int
    end: int
    backup: bool = False


@dataclass(frozen=True, slots=True)
class LostOffset:
    """The log covers this offset still, and a cleaner or a broken broker has taken what lay there. `told`: where
    the leader epoch of the newest head's position says that the log was cut off before that."""

    topic_id: str
    partition: int
    offset: int
    told: int | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """A run began. `deadline`: by which `Ended.at` it must have ended (effects, or seconds)."""

    run: str
    what: str
    deadline: float


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended: `done`, `nothing to do`, `killed`, or the name of the error that it ended with."""

    run: str
    reason: str
    at: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Looked:
    """A run asked for the `topic`, or for the `group`'s offsets. `hidden`: partitions of which the broker that it asked
    had not heard yet; `shown`: how many there were to it, where more may be added."""

    run: str
    what: str
    hidden: tuple[int, ...] = ()
    shown: int | None = None

    def shows(self, partition: int) -> bool:
        return partition not in self.hidden and (self.shown is None or partition < self.shown)


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan was pinned. `ranges`: (partition, start, end); `positions`: where the head stood. `action`: what an
    operator decided about the held waveforms `ids`; empty for what reads."""

    run: str
    plan_id: str
    kind: str
    generation: int
    base_sequence: int
    topic_id: str
    positions: dict[int, int]
    ranges: tuple[tuple[int, int, int], ...]
    action: str = ""
    ids: tuple[str, ...] = ()
    asks: bool = True
    """By the definition that it was made of, chunks are to be `proven`."""
    scope: tuple[int, int] | None = None
    """Of a backfill's, the start times that it owns, `[start, end)`, in nanoseconds."""
    after: tuple[str, ...] = ()
    """The batches of its backfill that come before it."""
    most_bytes: int | None = None
    """That it may read; None where nobody says."""
    epochs: dict[int, int] = field(default_factory=dict)
    """By partition, the leader epoch then."""
    epoch_ends: tuple[tuple[int, int, int], ...] = ()
    """Of a backfill's first: partition, leader epoch, and where the broker says that this ends."""
    told: tuple[tuple[int, int], ...] = ()
    """Partitions, and where the leader epoch of the position says that the log was cut off before that."""
    pick: str = ""
    """Which copy an operator named: first, last, or the place of one."""
    parks: bool = True
    """By the definition that it was made of, a batch is parked by itself where its gate closes."""
    clock_ms: int = 0
    """When that was."""
    idle_ms: int = 0
    """After which a partition without a record holds the watermark back no more."""


@dataclass(frozen=True, slots=True)
class Read:
    """A slice was landed: these offsets of `[start, end)` held a record. `former`: those of which what was read is cut
    off by now; `later`: of these, how many that took their place were so, too."""

    run: str
    plan_id: str
    topic_id: str
    partition: int
    start: int
    end: int
    offsets: tuple[int, ...]
    former: tuple[int, ...] = ()
    later: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """A row of the held table was staged. `stored`: it has the payload; else an earlier row of the place and piece.
    `sequence`: of the head that its decision was to become."""

    run: str
    topic_id: str
    partition: int
    offset: int
    id: str | None
    seq: int | None
    length: int
    piece: str
    valid: bool
    reason: str
    decision: str
    payload: bytes | None
    stored: bool = True
    sequence: int = 0
    asked: bool = True
    """What was read was asked to be `proven`, if the stream ever asks for that."""
    says: tuple[int | None, str | None] = (None, None)
    """Of the whole: of how many chunks it is, and its digest."""
    before: str = ""
    """Of what was discarded: why it was held until then."""

    @property
    def coordinate(self) -> Coordinate:
        return self.topic_id, self.partition, self.offset


@dataclass(frozen=True, slots=True)
class Published:
    """A row became visible, with the head of this `sequence`, whose event follows. `chunks`: (topic id, partition,
    offset, length, digest of the piece in hex) in order."""

    run: str
    plan_id: str
    sequence: int
    id: str
    samples: bytes
    chunks: tuple[tuple[str, int, int, int, str], ...]


@dataclass(frozen=True, slots=True)
class Committed:
    """A head. `skipped`: (partition, start, end) given up by name. `held`: the decisions whose rows the held snapshot
    that it names has; None where nobody looked, and every committed one's are there. `note`: its own words."""

    run: str
    sequence: int
    generation: int
    kind: str
    topic_id: str
    plan_id: str
    decision: str
    positions: dict[int, int]
    skipped: tuple[tuple[int, int, int], ...]
    held: tuple[str, ...] | None = None
    note: str = ""
    unproven: tuple[tuple[int, int], ...] = ()
    """Partitions of which no batch tells whether the log in front of the position is the one that was read: those where
    what lay there is lost; where no head was left, those of which another tool kept none. With the place where the
    leader epoch says that it was cut off, or the position where it does not."""
    earlier: tuple[int, ...] = ()
    """Of those of a head that was made anew, where the position is of an earlier leader epoch than the log's: what lies
    there by now proves nothing of that one."""
    counts: tuple[tuple[str, int], ...] | None = None
    """How many chunks are held, by reason, as it says itself; None where nobody looked, and so below."""
    watermark_ms: int | None = None
    seen_ms: dict[int, int] = field(default_factory=dict)
    """By partition, the record time of the last record before its position, as it says itself."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A row of the batches table. `partitions`: per partition, the audit's figures; empty where it has none. `starts`:
    (partition, start, end) of what it notes when waveforms start. `published`: how many waveforms its batch has, None
    where it does not say."""

    run: str
    sequence: int
    decision: str
    partitions: dict[int, dict[str, int]]
    starts: tuple[tuple[int, int, int], ...] = ()
    published: int | None = None


@dataclass(frozen=True, slots=True)
class Asks:
    """Whether the stream's definition asks for chunks that are `proven`, from here on. Without any: it always does."""

    proof: bool


@dataclass(frozen=True, slots=True)
class JunkLimit:
    """So many bytes of records that are no chunks the stream keeps at least; what is beyond may be held without."""

    bytes: int


@dataclass(frozen=True, slots=True)
class ReadBack:
    """What a reader finds in the published table, whenever that is something else, and at the end: (waveform id,
    samples)."""

    rows: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Advised:
    """The run that comes does what the refusal of the run `of` names as a way out."""

    run: str
    of: str


@dataclass(frozen=True, slots=True)
class Unhindered:
    """All is quiet, and nothing speaks against the run that comes: it has something to do, and ends well."""

    run: str


@dataclass(frozen=True, slots=True)
class GateClosed:
    """The gate stopped this plan, which would have published these waveforms."""

    plan_id: str
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answered:
    """Somebody accepts or parks this plan, at its gate."""

    plan_id: str


@dataclass(frozen=True, slots=True)
class Abandoned:
    """Somebody gave this plan up."""

    plan_id: str


@dataclass(frozen=True, slots=True)
class Projected:
    """A run wrote the group's offsets, tagged."""

    run: str
    topic_id: str
    offsets: dict[int, int]
    generation: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Rewound:
    """An operator asked for a rewind; `accepted`: what it skips was accepted by name. `only`: of these partitions;
    None: of all. `to`: partitions with the offsets that were named; `words`: those with a word of their own, and that.
    `time_ms`: of a rewind to a time. `accepts`: the offsets of partitions that were named as skipped; None: all."""

    run: str
    word: str
    accepted: bool
    only: tuple[int, ...] | None = None
    to: tuple[tuple[int, int], ...] = ()
    words: tuple[tuple[int, str], ...] = ()
    time_ms: int | None = None
    accepts: tuple[tuple[int, int, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class Undone:
    """An operator asked to undo the head `of`, the newest that was shown, or else the batch `plan_id`; `accepted`: what
    it skips was accepted by name."""

    run: str
    of: int
    plan_id: str
    accepted: bool


@dataclass(frozen=True, slots=True)
class Reset:
    """Somebody set the group's offset with Kafka's own tools; `offset` None: it expired."""

    topic_id: str
    partition: int
    offset: int | None


@dataclass(frozen=True, slots=True)
class Shared:
    """The group got a tag that no run of ours wrote: of `another` table, or of a copy of this one. `generation`,
    `sequence`: of the head that it names."""

    topic_id: str
    partition: int
    offset: int
    another: bool
    generation: int = 0
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class Forged:
    """Somebody who may commit offsets of the group wrote a tag of this table, of a head that nobody can have made."""

    topic_id: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Quiet:
    """The faults are healed and the last undisturbed runs are through: what was not seen by now is lost. `decided`:
    operators have decided about everything that was held, down to letting it go."""

    decided: bool = False


Event = (
    Produced
    | Settled
    | TopicMade
    | Retained
    | Truncated
    | LostOffset
    | Started
    | Ended
    | Looked
    | Planned
    | Read
    | Held
    | Loaded
    | Named
    | Opened
    | Published
    | Committed
    | Recorded
    | HistoryLost
    | ReadBack
    | Forgotten
    | TakenOut
    | Deleted
    | Advised
    | Unhindered
    | CatalogSetBack
    | GateClosed
    | Abandoned
    | Answered
    | Projected
    | GivenUp
    | Lands
    | Landed
    | Rewound
    | Undone
    | Reset
    | Shared
    | Forged
    | GateSays
    | Spoils
    | JunkLimit
    | Asks
    | OnReset
    | Shown
    | Approved
    | Declared
    | Backfilled
    | Offered
    | Replaced
    | StageBegun
    | LeftBehind
    | Cleared
    | JunkGoes
    | Verified
    | Quiet
)
