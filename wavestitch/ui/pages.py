"""The pages as HTML: plain values in, text out. What is not our own text is escaped; no script, no picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from urllib.parse import quote

from wavestitch.batch.stream_facts import PartitionFacts, StreamFacts
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.validation.offline_page import page


def overview_page(streams: Sequence[StreamFacts]) -> str:
    """All streams: where they stand, and their last batches."""
    sections = "".join("".join(_stream(s)) for s in streams) or "<p>No stream is declared.</p>"
    return page("Wavestitch", f"<h1>Streams</h1>{sections}")


def batch_page(stream: str, plan_id: str, row: BatchRow | None, *, documented: bool) -> str:
    """The batch of one run."""
    body = [f"<h1>Batch <code>{escape(plan_id)}</code></h1><p>Stream {escape(stream)}.</p>"]
    if documented:
        body.append(f'<p><a href="../docs/{quote(stream)}/{quote(plan_id)}/index.html">Data Docs of this batch</a></p>')
    if row is None:
        body.append(
            "<p>It is not in the stream's history: under way, stopped, or its row comes with the next batch.</p>"
        )
    else:
        body += _batch(row)
    return page(f"Batch {plan_id[:16]}", "".join(body))


def note_page(title: str, sentence: str) -> str:
    return page(title, f"<h1>{escape(title)}</h1><p>{escape(sentence)}</p>")


def _stream(s: StreamFacts) -> Iterator[str]:
    yield f"<h2>{escape(s.name)}</h2>"
    if s.problem:
        yield f'<p class="failed">{escape(s.problem)}</p>'
    if s.head is None:
        return
    backlog = sum(p.backlog or 0 for p in s.partitions)
    yield f"<p>Topic <code>{escape(s.topic)}</code>. Head {s.head.sequence}, generation {s.head.generation} "
    yield f"({escape(s.head.kind.value)}). Watermark {_clock(s.head.watermark_ms)}. "
    yield f"Backlog {backlog} offsets. Held chunks: {s.open} open, {s.quarantined} quarantined.</p>"
    yield _table(("Partition", "Position", "Log start", "End", "Backlog"), [_partition(p) for p in s.partitions])
    if s.batches:
        yield "<h3>Last batches</h3>"
        heads = ("Committed", "Kind", "Batch", "Published", "Open", "Quarantined", "Read", "Identity", "Note")
        yield _table(heads, [_row(r, s) for r in s.batches])


def _partition(p: PartitionFacts) -> list[str]:
    return [_number(n) for n in (p.partition, p.position, p.log_start, p.end, p.backlog)]


def _row(r: BatchRow, s: StreamFacts) -> list[str]:
    name = f"<code>{escape(r.plan_id[:16])}</code>" if r.plan_id else ""
    if r.plan_id in s.documented:
        name = f'<a href="docs/{quote(s.name)}/{quote(r.plan_id)}/index.html">{name}</a>'
    figures = [_number(r.waveforms.get(w)) for w in ("published", "open", "quarantined")]
    read = _number(r.counts.get("read"))
    return [_clock(r.committed_ms), escape(r.kind), name, *figures, read, _identity(r), escape(r.note)]


def _batch(r: BatchRow) -> Iterator[str]:
    yield f"<p>Committed {_clock(r.committed_ms)} as head {r.sequence} of generation {r.generation} "
    yield f"({escape(r.kind)}). Identity: {_identity(r)}. {escape(r.note)}</p>"
    yield _table(("Waveforms", ""), [[escape(k), _number(v)] for k, v in r.waveforms.items()])
    names = list(next(iter(r.partitions.values()), {}))
    rows = [[escape(p), *(_number(c.get(n)) for n in names)] for p, c in r.partitions.items()]
    yield _table(("Chunks of partition", *(n.replace("_", " ") for n in names)), rows)
    if r.reasons:
        yield _table(("Reason", "Chunks"), [[escape(k), _number(v)] for k, v in r.reasons.items()])
    yield _table(("Step", "Seconds"), [[escape(k), f"{v:.1f}"] for k, v in r.seconds.items()])


def _identity(r: BatchRow) -> str:
    if not r.partitions:
        return "–"
    return '<span class="passed">balances</span>' if r.identity_balances else '<span class="failed">does not</span>'


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """`rows` are safe HTML already."""
    top = "".join(f"<th>{escape(h)}</th>" for h in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}".replace(",", "&#8239;")


def _clock(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S") if ms else "–"
