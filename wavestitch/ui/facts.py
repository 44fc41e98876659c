"""What the pages say, for programs: the same facts as JSON, by the names that docs/operations.md lists. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from wavestitch.batch.brief_facts import held_by
from wavestitch.batch.held_page import ROWS_SHOWN, HeldList, HeldOne
from wavestitch.batch.held_told import chunk_said, texts_said, waveform_said
from wavestitch.batch.stream_facts import PartitionFacts, StreamFacts
from wavestitch.batch.watch import freshness_to_json, room_to_json
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.headroom import PartitionRoom
from wavestitch.ui.pages import looked_at, remarks_of
from wavestitch.ui.run_story import RunFacts, Story
from wavestitch.ui.stream_rows import StreamRow


def overview_facts(rows: Sequence[StreamRow]) -> dict[str, Any]:
    """The streams, what needs somebody first."""
    return {"streams": [_stream(row) for row in rows]}


def one_stream_facts(row: StreamRow, asked: StreamFacts | None) -> dict[str, Any]:
    """`open`, `quarantined`: chunks, None where the tables have not answered. `counted`: all that are open were; else
    `open` is how many of them, and how many are quarantined is not known."""
    full = looked_at(asked)
    return _stream(row) | {
        "open": full.open if full is not None else None,
        "quarantined": full.quarantined if full is not None else None,
        "counted": full is not None and full.counted,
        "remarks": list(remarks_of(row, asked)),
        "batches": [batch_row_said(found) for found in row.facts.batches],
    }


def _stream(row: StreamRow) -> dict[str, Any]:
    """`looked_at_s_ago`: how old what is said is; None where nothing is known yet. Times in ms since the epoch."""
    found, failed = row.facts, row.failed
    said: dict[str, Any] = {
        "stream": found.name,
        "state": row.state.value,
        "problem": row.problem,
        "failed_run": None if failed is None else [failed.dag_id, failed.run_id, failed.at_ms],
        "looked_at_s_ago": row.age,
    }
    if found.head is None:
        return said
    return said | {
        "topic": found.topic,
        "head": found.head.sequence,
        "generation": found.head.generation,
        "watermark_ms": found.head.watermark_ms,
        "last_batch_ms": found.head.committed_ms,
        "backlog": found.backlog,
        "headroom": room_to_json(found.room),
        "freshness": freshness_to_json(found.room),
        "held": dict(held_by(found.head)),
        "partitions": _partitions(found),
    }


def run_said(kind: str, stream: str, run: RunFacts, story: Story, row: BatchRow | None) -> dict[str, Any]:
    """One run. `batch`: None where it carried none, or the history has no row of it."""
    return {
        "kind": kind,
        "stream": stream,
        "dag_id": run.dag_id,
        "run_id": run.run_id,
        "state": run.state,
        "says": story.says,
        "todo": story.todo,
        "shown": list(story.shown),
        "lists": {heading: list(lines) for heading, lines in story.lists},
        "plan_id": story.plan_id,
        "batch": None if row is None else batch_row_said(row),
    }


def batch_row_said(row: BatchRow) -> dict[str, Any]:
    """A row of the history, but for what only the product reads."""
    return {
        "plan_id": row.plan_id,
        "head": row.sequence,
        "generation": row.generation,
        "kind": row.kind,
        "committed_ms": row.committed_ms,
        "ranges": row.ranges,
        "waveforms": row.waveforms,
        "chunks": row.counts,
        "partitions": row.partitions,
        "reasons": row.reasons,
        "seconds": row.seconds,
        "waits": None if row.waits is None else asdict(row.waits),
        "balances": row.identity_balances if row.partitions else None,
        "note": row.note,
    }


def held_list_facts(stream: str, found: HeldList) -> dict[str, Any]:
    """`after`: what the next page is asked with. `not_looked_at`: waveforms with more chunks than a page looks at."""
    return {
        "stream": stream,
        "counts": dict(found.counts),
        "waveforms": [waveform_said(one) for one in found.waveforms],
        "not_looked_at": {one.waveform_id: one.rows for one in found.crowds},
        "after": found.after,
    }


def held_one_facts(stream: str, found: HeldOne, first: int = 0) -> dict[str, Any]:
    """One waveform that is held, as many of its chunks as a page has, from number `first` on; `after`: the number that
    the next page begins with, None at the end. `missing`: as many of the missing ones, of `missing_chunks`."""
    rows, end = found.rows(), first + ROWS_SHOWN
    shown = rows[first:end]
    return waveform_said(found.waveform) | {
        "stream": stream,
        "verdict": found.verdict,
        "of": found.whole,
        "missing": list(found.missing[:ROWS_SHOWN]),
        "missing_chunks": len(found.missing),
        "metadata": texts_said(held for held, _ in shown),
        "held": [chunk_said(held, state) | {"unbelieved": found.unbelieved.get(held)} for held, state in shown],
        "after": end if end < len(rows) else None,
    }


def _partitions(found: StreamFacts) -> list[dict[str, Any]]:
    rooms = {p.partition: p for p in found.room.partitions} if found.room is not None else {}
    return [_partition(at, rooms.get(at.partition)) for at in found.partitions]


def _partition(at: PartitionFacts, seen: PartitionRoom | None) -> dict[str, Any]:
    return {
        "partition": at.partition,
        "log_start": at.log_start,
        "position": at.position,
        "end": at.end,
        "backlog": at.backlog,
        "behind_s": seen.behind_s if seen is not None else None,
        "left_s": seen.left_s if seen is not None else None,
        "lost": seen.lost if seen is not None else None,
    }
