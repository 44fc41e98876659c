"""A verification on the terminal: what was compared with what, how many are what, and which are not the same."""

from __future__ import annotations

from rich.table import Table

from wavestitch.batch.verify import Verified
from wavestitch.contracts.verification import DIFFERENCES, Agreement, Compared, in_words
from wavestitch.terminal import out

_MOST = 50


def show_verified(done: Verified) -> None:
    out.print(
        f"stream {done.stream}, {sum(r.size for r in done.read)} offsets, compared with snapshot {done.snapshot_id} "
        f"(head {done.sequence}): {in_words(done.counts, done.cut)}"
    )
    others = sorted((one for one in done.waveforms if one.found is not Agreement.SAME), key=_order)
    if others:
        table = Table(box=None, pad_edge=False)
        for name in ("waveform", "is", "published by", "why"):
            table.add_column(name)
        for one in others[:_MOST]:
            table.add_row(one.waveform_id, one.found.value, one.plan_id[:16], one.why)
        out.print(table)
    if len(others) > _MOST:
        out.print(f"and {len(others) - _MOST} more: --into FILE keeps all of them")
    for remark in done.remarks:
        out.print(remark)


def _order(one: Compared) -> tuple[bool, str, str]:
    return one.found not in DIFFERENCES, one.found.value, one.waveform_id
