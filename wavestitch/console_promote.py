"""A promotion on the terminal: which waveforms would be replaced, published or taken out, and what came of it."""

from __future__ import annotations

from wavestitch.batch.promote import PromotionPreview
from wavestitch.batch.results import Finished, Published
from wavestitch.console import show_stages
from wavestitch.contracts.harmless import in_shell
from wavestitch.contracts.promotion import Promotion
from wavestitch.contracts.stages import explain
from wavestitch.terminal import out

_SHOWN = 50


def show_preview(found: PromotionPreview) -> None:
    counts = ", ".join(f"{n} {name}" for name, n in sorted(found.counts.items()))
    out.print(f"stream {found.plan.stream.name}, {found.plan.records} offsets: {found.promotion.says}")
    out.print(f"compared: {counts}")
    for waveform_id, change, why in found.changes[:_SHOWN]:
        out.print(f"  {in_shell(waveform_id)}: {change}{f', {why}' if why else ''}")
    _say_more(len(found.changes))
    for waveform_id, problem in found.passed_over[:_SHOWN]:
        out.print(f"  passed over: {in_shell(waveform_id)} {problem}")
    for remark in found.remarks:
        out.print(remark)
    show_stages(explain(found.stages))
    _say_how(found.plan.stream.name, found.plan.plan_id)


def show_kept(stream: str, preview_id: str, promotion: Promotion, done: Published | Finished | None) -> None:
    out.print(f"{len(promotion.ids)} waveforms; {promotion.note}", highlight=False)
    for waveform_id in promotion.ids[:_SHOWN]:
        out.print(f"  {in_shell(waveform_id)}")
    _say_more(len(promotion.ids))
    if done is None:
        _say_how(stream, preview_id)
    elif isinstance(done, Finished):
        out.print(f"it was done already, as head {done.published.sequence}, and stands: nothing was changed now")
    else:
        out.print(f"done: head {done.sequence}; take it back with `wavestitch undo {stream} --of {done.sequence}`")


def _say_more(there: int) -> None:
    if there > _SHOWN:
        out.print(f"  and {there - _SHOWN} more: --json names all of them")


def _say_how(stream: str, preview_id: str) -> None:
    command = f"wavestitch promote {stream} --preview {preview_id} --apply"
    out.print(f"nothing was changed. Do exactly this: {command}", soft_wrap=True, highlight=False)
