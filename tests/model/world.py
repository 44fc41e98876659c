"""What the model is about: the records of a small log, heads, groups, held rows and runs. Values only, no rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

Place = tuple[int, int]
"""(partition, offset)."""
Version = tuple[int, int, int]
"""(table, generation, sequence) of the head that a tag names."""
Copies = tuple[str, ...]
"""The bytes of a whole waveform: of each of its chunks, by sequence, which copy."""


class Record(NamedTuple):
    """A chunk. `copy`: its bytes; two copies of one chunk contradict each other."""

    waveform: str
    seq: int
    copy: str = "x"


@dataclass(frozen=True)
class World:
    """`log`: by partition and offset. `failing`: what an expectation refuses until the stream's definition is put
    right. `spoiled`: the gate closes where half of what would be published is of these."""

    log: tuple[tuple[Record, ...], ...]
    chunks: Mapping[str, int]
    failing: frozenset[str] = frozenset()
    spoiled: frozenset[str] = frozenset()

    def at(self, place: Place) -> Record:
        return self.log[place[0]][place[1]]


WAVES = World(
    log=((Record("A", 0), Record("B", 0), Record("A", 1), Record("A", 0), Record("C", 0)),),
    chunks={"A": 2, "B": 1, "C": 2},
)
"""The fourth repeats the first; C never becomes whole."""
HELD = World(
    log=((Record("P", 0, "x"), Record("P", 0, "y"), Record("F", 0)),), chunks={"P": 1, "F": 1}, failing=frozenset("F")
)
"""P contradicts itself; F is refused by an expectation."""
MORE_COPIES = World(
    log=((Record("F", 0), Record("P", 0), Record("P", 0, "y"), Record("P", 0, "z"), Record("F", 0, "y")),),
    chunks={"P": 1, "F": 1},
    failing=frozenset("F"),
)
"""What is decided about meanwhile gets another copy."""
DISCARDED = World(log=((Record("F", 0), Record("F", 0, "y")),), chunks={"F": 1}, failing=frozenset("F"))
"""What somebody lets go gets another copy."""
GATED = World(
    log=((Record("S", 0), Record("B", 0), Record("D", 0)),), chunks={"S": 1, "B": 1, "D": 1}, spoiled=frozenset("S")
)
"""S alone closes the gate; among B and D it is too few."""
REPAIRED = World(
    log=((Record("S", 0), Record("S", 0), Record("B", 0), Record("D", 0)),),
    chunks={"S": 1, "B": 1, "D": 1},
    failing=frozenset("S"),
    spoiled=frozenset("S"),
)
"""S is refused by an expectation; once that is put right, its repeat closes the gate, unless B and D come with it."""
PARTED = World(
    log=((Record("A", 0), Record("B", 0)), (Record("A", 1), Record("C", 0))), chunks={"A": 2, "B": 1, "C": 2}
)
"""Two partitions, and a waveform that needs both."""


class Held(NamedTuple):
    """The newest row about a place. `before`: of a discarded one, why it was held until then. `by`: the run that wrote
    it, as long as somebody may undo that."""

    place: Place
    reason: str
    before: str = ""
    by: int = 0


class Made(NamedTuple):
    """What made a head, as whoever undoes it knows. `number`: of the run, 0 for a rewind. `back`: the partitions that
    it moved, and from where. `rows`: what a decision wrote; `prior`: what they were before, for the checks alone."""

    sequence: int
    number: int
    back: tuple[tuple[int, int], ...] = ()
    action: str = ""
    waveform: str = ""
    rows: frozenset[Held] = frozenset()
    prior: frozenset[Held] = frozenset()


class Head(NamedTuple):
    """`held`: the rows of the snapshot that it names. `skipped`: places that were given up by name.

    `made`: what made it and those before it, as long as somebody may undo that. `was` is for the checks alone: why each
    discarded place was held, as it stood when somebody discarded it."""

    sequence: int = 0
    generation: int = 0
    positions: tuple[int, ...] = (0,)
    published: frozenset[tuple[str, Copies]] = frozenset()
    held: frozenset[Held] = frozenset()
    table: int = 0
    catalog: int = 0
    skipped: frozenset[Place] = frozenset()
    was: frozenset[tuple[Place, str]] = frozenset()
    made: tuple[Made, ...] = ()

    @property
    def version(self) -> Version:
        return self.table, self.generation, self.sequence

    @property
    def bytes_of(self) -> dict[str, Copies]:
        return dict(self.published)

    def moved(self, positions: tuple[int, ...], *, generation: int | None = None) -> Head:
        newer = self.generation + 1 if generation is None else generation
        return self._replace(sequence=self.sequence + 1, generation=newer, positions=positions)


class Group(NamedTuple):
    """One partition's. `offset` None: expired. `tag` None: foreign."""

    offset: int | None = 0
    tag: Version | None = (0, 0, 0)


Groups = tuple[Group, ...]


class Choice(NamedTuple):
    """What an operator decided about one waveform. `among`: the places that were shown of it; `meant`: the bytes
    that the operator saw as the picked ones, for the checks alone. `undoes`: the decision that this takes back."""

    action: str
    waveform: str
    among: frozenset[Place] = frozenset()
    meant: Copies = ()
    undoes: Made | None = None


class Run(NamedTuple):
    """`kind`: ingest, backfill or held. `step`: what it has done last. `base`: sequence of the head that its decision
    rests on. `gate`: what somebody said to its closed gate. `held`: the snapshot that it staged. `shown`: the head that
    it is about to write into the group. `stopped_with`: the waveforms that its gate closed over."""

    kind: str
    step: str
    base: int
    generation: int
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    number: int
    publish: frozenset[tuple[str, Copies]] = frozenset()
    held: frozenset[Held] = frozenset()
    table: int = 0
    catalog: int = 0
    mended: bool = False
    gate: str = ""
    choice: Choice | None = None
    shown: Head | None = None
    stopped_with: frozenset[str] = frozenset()

    @property
    def moves(self) -> bool:
        return self.kind == "ingest"

    @property
    def places(self) -> list[Place]:
        """What it reads."""
        return [(p, o) for p, (s, e) in enumerate(zip(self.starts, self.ends, strict=True)) for o in range(s, e)]


class Budget(NamedTuple):
    """How much of each may still happen. `records`: how long the log grows. `catalogs`: copies, losses, exchanges.
    `decisions`: about what is held. `gates`: what is said to closed ones. `afresh`: starting over, of an operator's own
    accord. `backfills`: whether runs may be backfills, too. `parts`: whether ingests and rewinds may be of one
    partition. `undos`: what is taken back, of what was committed as long as that may still happen. `retentions`: how
    often the log's beginning may move on, in one partition."""

    runs: int = 3
    rewinds: int = 1
    resets: int = 1
    expiries: int = 1
    records: int = 5
    catalogs: int = 0
    decisions: int = 0
    gates: int = 0
    mends: int = 0
    afresh: int = 0
    backfills: bool = True
    parts: bool = False
    undos: int = 0
    retentions: int = 0


class State(NamedTuple):
    """`starts`, `ends`: per partition, where the log begins and ends; `furthest`: where any head ever stood. `stopped`:
    the plans that stand at a closed gate. `main`: what was staged last, committed or not; nobody looks at it."""

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    head: Head
    group: Groups
    runs: tuple[Run, ...]
    furthest: tuple[int, ...]
    left: Budget
    next_number: int = 1
    other: Head | None = None
    """The head of a catalog that is not the one in use: a copy, or the one that was before."""
    stopped: frozenset[Run] = frozenset()
    mended: bool = False
    main: frozenset[Held] | None = None

    def without(self, i: int) -> State:
        return self._replace(runs=self.runs[:i] + self.runs[i + 1 :])

    def with_run(self, i: int, run: Run) -> State:
        return self._replace(runs=(*self.runs[:i], run, *self.runs[i + 1 :]))


@dataclass(frozen=True)
class Scenario:
    """A world and a budget: small enough to be explored to the end. `mutants`: the rules that only it can show."""

    world: World
    budget: Budget
    mutants: tuple[str, ...] = ()
