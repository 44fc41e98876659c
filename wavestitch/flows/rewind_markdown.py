"""The preview of a rewind as Markdown, for whoever is asked to approve of it. Says what; decides nothing."""

from __future__ import annotations

from collections.abc import Sequence

from wavestitch.contracts.harmless import for_markdown
from wavestitch.contracts.rewind_preview import HEADS, PartitionPreview, RewindPreview

_MOST_ROWS = 50


def describe_preview(preview: RewindPreview) -> str:
    """First what would happen, then what would be lost, then each partition."""
    said = [
        f"**{for_markdown(preview.asked_by or 'somebody')}** asks to rewind **{preview.stream}** to "
        f"{for_markdown(preview.to)}{_of(preview)}: {for_markdown(preview.why)}",
        f"{preview.reads_again} Runs under way end fenced.",
    ]
    if preview.skipped:
        gone = "\n".join(f"- {r} ({r.size} offsets)" for r in preview.skipped[:_MOST_ROWS])
        if rest := preview.skipped[_MOST_ROWS:]:
            gone += f"\n- and {len(rest)} ranges more, {sum(r.size for r in rest)} offsets"
        said.append(f"**Skipped for good**, unless somebody rewinds again (needs *accept skip*):\n\n{gone}")
    if preview.missing:
        gone = "\n".join(f"- {for_markdown(m)}" for m in preview.missing)
        said.append(f"**Missing in the tables** (needs *accept missing*):\n\n{gone}")
    if preview.settles:
        said.append(f"Settles: {for_markdown(preview.settles)}")
    said += [for_markdown(remark) for remark in preview.remarks]
    said.append(_table(preview.rows))
    said.append(
        f"Preview `{preview.preview_id}` of generation {preview.generation}. Approving does exactly this, also after "
        "an ingest in between; another rewind makes it void."
    )
    return "\n\n".join(said)


def _of(preview: RewindPreview) -> str:
    return f" of partitions {for_markdown(preview.partitions)}" if preview.partitions else ""


def _table(rows: Sequence[PartitionPreview]) -> str:
    lines = [f"| {' | '.join(HEADS)} |", f"|{'---:|' * len(HEADS)}"]
    lines += [f"| {' | '.join(row.cells)} |" for row in rows[:_MOST_ROWS]]
    if len(rows) > _MOST_ROWS:
        lines.append(f"| and {len(rows) - _MOST_ROWS} more |{' |' * (len(HEADS) - 1)}")
    return "\n".join(lines)
