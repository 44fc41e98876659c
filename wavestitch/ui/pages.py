"""The pages of the API server: plain values in, text out. Decides what is shown; `html_pages` makes it harmless."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from wavestitch.batch.stream_facts import StreamFacts
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.freshness import said_of_freshness, say_freshness
from wavestitch.contracts.headroom import Alarm, Room
from wavestitch.contracts.headroom_told import say_room
from wavestitch.contracts.rewind_preview import length
from wavestitch.contracts.stream import (
    backfill_dag_id,
    decide_dag_id,
    ingest_dag_id,
    promote_dag_id,
    rewind_dag_id,
    verify_dag_id,
)
from wavestitch.html_pages import number, render_page
from wavestitch.ui.bars import WIDTH, bar_of
from wavestitch.ui.run_story import RunFacts, Story
from wavestitch.ui.shown import blocks
from wavestitch.ui.stream_rows import STYLES, State, StreamRow, summary

Cells = Sequence[Sequence[str | Markup]]
_BATCHES = 15
_LINES = 500


def overview_page(rows: Sequence[StreamRow]) -> str:
    """All streams that somebody may read: where they stand, what needs somebody first."""
    return render_page(
        "overview",
        title="Wavestitch",
        root="",
        here="streams",
        rows=rows,
        summary=summary(rows),
        looking=any(row.state is State.LOOKING for row in rows),
        span=_span,
    )


def _of_these(full: StreamFacts) -> str:
    return f": {full.open} open, {full.quarantined} quarantined" if full.counted else f", at least {full.open} open"


def stream_page(row: StreamRow, asked: StreamFacts | None) -> str:
    """One stream: what is to be done, its partitions and its last batches. `asked`: with what is held looked at; None
    where the tables have not answered yet."""
    facts, full = row.facts, looked_at(asked)
    rooms = {p.partition: p for p in facts.room.partitions} if facts.room is not None else {}
    says, todo = _headline(row)
    held = f"{number(row.held)} in all" + ("" if full is None else _of_these(full))
    remarks = remarks_of(row, asked)
    return render_page(
        "stream",
        title=facts.name,
        root="../",
        here="streams",
        row=replace(row, facts=replace(facts, remarks=remarks)),
        says=says,
        todo=todo,
        fresh="" if facts.room is None else _fresh(facts.room, row.state),
        held=Markup(held),  # noqa: S704 - digits and words of ours
        ingest=ingest_dag_id(facts.name),
        dags=[
            ("ingest", ingest_dag_id(facts.name)),
            ("backfill", backfill_dag_id(facts.name)),
            ("rewind", rewind_dag_id(facts.name)),
            ("decide about what is held", decide_dag_id(facts.name)),
            ("verify", verify_dag_id(facts.name)),
            ("promote", promote_dag_id(facts.name)),
        ],
        partitions=[(p, rooms.get(p.partition)) for p in facts.partitions],
        rows=facts.batches[:_BATCHES],
        documented=full.documented if full is not None else frozenset(),
        looking=asked is None or row.state is State.LOOKING,
        bar_of=bar_of,
        width=WIDTH,
        styles={alarm.value: STYLES[State(alarm.value)] for alarm in Alarm},
        span=_span,
    )


def _fresh(room: Room, state: State) -> str:
    """Beside the headline, which says it where it is what is the matter."""
    of = room.freshness
    return "" if of is None or state is State.LATE else f"It is {said_of_freshness(of)}."


def looked_at(asked: StreamFacts | None) -> StreamFacts | None:
    """What the tables said of what is held; None where they did not, or said only why not: that is no zero."""
    return asked if asked is not None and asked.head is not None else None


def remarks_of(row: StreamRow, asked: StreamFacts | None) -> tuple[str, ...]:
    """What others have changed, and what keeps something from being known."""
    known, full = row.facts.remarks, looked_at(asked)
    more = full.remarks if full is not None else (asked.problem,) if asked is not None and row.facts.head else ()
    return (*known, *(remark for remark in more if remark not in known))


def _headline(row: StreamRow) -> tuple[str, str]:
    """What is the matter, and what to do about it."""
    facts = row.facts
    if row.state is State.LOOKING:
        return "its tables are asked.", "The page asks again by itself."
    if row.state is State.NEW:
        return "nothing was read so far.", "Its first batch begins where the stream's file says."
    if facts.room is not None and row.state in (State.LOST, State.RED, State.AMBER):
        subject, text = say_room(facts.name, facts.room)
        said = subject.removeprefix(f"{facts.name}: ").removeprefix(f"headroom is {facts.room.alarm}: ")
        return f"{said}.", text
    if facts.room is not None and row.state is State.LATE:
        subject, text = say_freshness(facts.name, facts.room.freshness)
        return f"{subject.removeprefix(f'{facts.name}: ')}.", text
    if row.state is State.UNKNOWN:
        if facts.head is None:
            return facts.problem, "Nothing of it can be shown before that is put right."
        return facts.problem, "What the tables know is shown; figures of the log come when it answers."
    if row.state is State.FAILED:
        return "the last run failed.", "Its page says why, and what to do; retry its tasks once that is mended."
    said = "nothing is unread." if not facts.backlog else f"{facts.backlog} offsets are unread."
    return said, "" if not facts.backlog else "Retention is far from them; the next batch reads them."


@dataclass(frozen=True, slots=True)
class BatchOfRun:
    """The row of the batch that a run carried, None where the history has none; `problem`: why that is not known.
    `late`: since the tables have not answered yet."""

    row: BatchRow | None = None
    documented: bool = False
    problem: str = ""
    late: bool = False


def run_page(kind: str, stream: str, run: RunFacts, story: Story, batch: BatchOfRun) -> str:
    """One run: what happened, what to do, and the batch that it carried."""
    row = batch.row
    counted = next(iter(row.partitions.values()), {}) if row else {}
    return render_page(
        "run",
        root="../",
        here="",
        title=f"{kind} {stream}".strip(),
        kind=kind,
        stream=stream,
        dag_id=run.dag_id,
        run_id=run.run_id,
        state=run.state,
        story=story,
        shown=blocks(story.shown[:_LINES]),
        most=_LINES,
        documented=batch.documented,
        problem=batch.problem,
        late=batch.late,
        row=row,
        numbered=_numbered,
        audit_heads=["Chunks of partition", *(n.replace("_", " ") for n in counted)],
        audit_rows=[[p, *(number(c.get(n)) for n in counted)] for p, c in row.partitions.items()] if row else [],
        seconds=[[step, f"{took:.1f}"] for step, took in row.seconds.items()] if row else [],
    )


def note_page(title: str, sentence: str, *, root: str, late: bool = False) -> str:
    """`root`: the way from it to the first page."""
    return render_page("note", root=root, here="", title=title, sentence=sentence, late=late)


def _numbered(found: Mapping[str, int]) -> Cells:
    return [[name, number(n)] for name, n in found.items()]


def _span(seconds: float | None) -> str:
    return "–" if seconds is None else length(max(0.0, seconds))
