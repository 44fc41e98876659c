"""A verification, or a comparison of definitions, on the terminal: how many are what, and which are not the same."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from wavestitch.batch.compare import DefinitionCompared
from wavestitch.batch.verify import Verified
from wavestitch.contracts.definition_change import CHANGES, Change, changes_in_words
from wavestitch.contracts.verification import DIFFERENCES, Agreement, Compared
from wavestitch.terminal import out

_MOST = 50


def show_verified(done: Verified) -> None:
    out.print(
        f"stream {done.stream}, {sum(r.size for r in done.read)} offsets, compared with snapshot {done.snapshot_id} "
        f"(head {done.sequence}): {done.said}"
    )
    for name, counts in (("offsets", done.offsets), ("records", done.records), ("held", done.held)):
        if any(counts.values()):
            out.print(f"{name}: {', '.join(f'{n} {what}' for what, n in counts.items() if n)}")
    others = sorted((one for one in done.waveforms if one.found is not Agreement.SAME), key=_order)
    _show(
        [(one.waveform_id, one.found.value, one.plan_id[:16], one.why) for one in others],
        (*done.misplaced, *done.remarks),
    )


def show_compared(done: DefinitionCompared) -> None:
    out.print(
        f"stream {done.stream}, {sum(r.size for r in done.read)} offsets, compared with snapshot {done.snapshot_id} "
        f"(head {done.sequence}): {changes_in_words(done.counts)}"
    )
    for sentence in done.otherwise:
        out.print(sentence)
    others = [one for one in done.waveforms if one.change is not Change.SAME]
    others.sort(key=lambda one: (one.change not in CHANGES, one.change.value, one.waveform_id))
    _show([(one.waveform_id, one.change.value, one.plan_id[:16], one.why) for one in others], done.remarks)


def _show(rows: Sequence[tuple[str, str, str, str]], remarks: Sequence[str]) -> None:
    if rows:
        table = Table(box=None, pad_edge=False)
        for name in ("waveform", "is", "published by", "why"):
            table.add_column(name)
        for row in rows[:_MOST]:
            table.add_row(*row)
        out.print_table(table)
    if len(rows) > _MOST:
        out.print(f"and {len(rows) - _MOST} more: --into FILE keeps all of them")
    for remark in remarks:
        out.print(remark)


def _order(one: Compared) -> tuple[bool, str, str]:
    return one.found not in DIFFERENCES, one.found.value, one.waveform_id
