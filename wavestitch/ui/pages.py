"""The pages of the API server: plain values in, text out. Decides what is shown; `html_pages` makes it harmless."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from wavestitch.batch.stream_facts import StreamFacts
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.html_pages import number, render_page

Cells = Sequence[Sequence[str | Markup]]


def overview_page(streams: Sequence[tuple[StreamFacts, float | None]]) -> str:
    """All streams that somebody may read: where they stand, their last batches, and how old that is, in s."""
    return render_page("overview", title="Wavestitch", root="", here="streams", streams=streams, partitions=_partitions)


def batch_page(stream: str, plan_id: str, row: BatchRow | None, *, documented: bool) -> str:
    """The batch of one run."""
    counted = next(iter(row.partitions.values()), {}) if row else {}
    return render_page(
        "batch",
        root="../",
        here="",
        title=f"Batch {plan_id[:16]}",
        stream=stream,
        plan_id=plan_id,
        documented=documented,
        row=row,
        numbered=_numbered,
        audit_heads=["Chunks of partition", *(n.replace("_", " ") for n in counted)],
        audit_rows=[[p, *(number(c.get(n)) for n in counted)] for p, c in row.partitions.items()] if row else [],
        seconds=[[step, f"{took:.1f}"] for step, took in row.seconds.items()] if row else [],
    )


def note_page(title: str, sentence: str, *, root: str) -> str:
    """`root`: the way from it to the first page."""
    return render_page("note", root=root, here="", title=title, sentence=sentence)


def _numbered(found: Mapping[str, int]) -> Cells:
    return [[name, number(n)] for name, n in found.items()]


def _partitions(s: StreamFacts) -> Cells:
    return [[number(n) for n in (p.partition, p.position, p.log_start, p.end, p.backlog)] for p in s.partitions]
