"""A backfill on the terminal: what it would read and what is gone, and what came of it."""

from __future__ import annotations

from wavestitch.batch.backfill import Backfilled, BackfillPlanned
from wavestitch.console import show_stages
from wavestitch.terminal import out

MIB = 1 << 20


def show_backfill_plan(found: BackfillPlanned) -> None:
    if found.nothing:
        out.print(f"Nothing to read: {found.nothing}")
    else:
        batches = f"{len(found.plans)} batches" if len(found.plans) > 1 else "1 batch"
        out.print(
            f"backfill of {found.stream}: {found.offsets} offsets, about {found.estimated_bytes / MIB:.1f} MiB, in "
            f"{batches}; positions and what is held stay as they are"
        )
    for r in found.lost:
        out.print(f"{r} is gone from the log, no ingest has read it, and it may have held waveforms of the interval")
    for r in found.read_before:
        out.print(f"{r} is gone from the log; an ingest had read it")
    for remark in found.remarks:
        out.print(remark)
    show_stages(found.stages)


def show_backfilled(done: Backfilled) -> None:
    out.print(
        f"{done.published} waveforms published in {done.batches} batches; {done.replays} chunks are of waveforms that "
        "were published before"
    )
    if done.reported:
        out.print(f"{done.reported} chunks could not be published by a backfill, and were left: {_some(done)}")
    for said in done.said:
        out.print(said)


def _some(done: Backfilled) -> str:
    return ", ".join(done.incomplete) or "an ingest decides about them"
