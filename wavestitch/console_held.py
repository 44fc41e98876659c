"""What a person sees of what is held: a page of waveforms, one of them in full, and what a decision would do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wavestitch.batch.held_decision import HeldPreview
from wavestitch.batch.held_records import HeldRecord
from wavestitch.batch.held_waveforms import HeldWaveform
from wavestitch.batch.results import Finished, Published
from wavestitch.console import show_held, show_stages
from wavestitch.contracts.belief import Belief
from wavestitch.contracts.harmless import in_shell
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.quantities import clock
from wavestitch.contracts.stages import explain
from wavestitch.contracts.stream import Stream
from wavestitch.terminal import out

_SHOWN = 20


def show_list(stream: str, counts: Mapping[str, int], page: Sequence[HeldWaveform], *, after: str | None) -> None:
    """`counts`: chunks by reason, as the head has them, records that are no chunks among them."""
    if counts:
        out.print("held chunks: " + ", ".join(f"{n} {reason}" for reason, n in sorted(counts.items())))
    held = [h for one in page for h in one.held]
    show_held(held, [s for one in page for s in one.states])
    if after is not None:
        # In one word, and not parted by the end of the terminal's line: it is there to be pasted.
        command = f"wavestitch held {stream} --after={in_shell(after)}"
        out.print(f"there are more: {command}", soft_wrap=True, highlight=False)


def show_waveform(one: HeldWaveform, stream: Stream) -> None:
    """Which chunks are there, which miss, headers, times, why."""
    reason, evidence = one.verdict(stream)
    size = f"{len(one.held)} chunks, {one.bytes} bytes"
    published = ", published with other bytes" if one.published else ""
    out.print(f"{in_shell(one.waveform_id)}: {size}{published}", style="bold")
    out.print(f"  source {one.source or '(none)'}; by the present definition: {reason or 'whole'} {evidence}")
    belief = Belief(stream)
    for h, state in zip(one.held, one.states, strict=True):
        c = h.chunk
        when = clock(c.timestamp_ms, "milliseconds")
        out.print(f"  chunk {c.seq} of {c.count or '?'} at {c.partition}:{c.offset}, {c.length} bytes, {when}")
        out.print(f"    crc {c.crc:08x}, digest of the whole {c.digest or 'none'}, sha-256 {c.piece.hex()[:16]}…")
        out.print(f"    {state.value}: {h.evidence}")
        if why := belief.why_not(h):
            out.print(f"    not believed: {why}")
    out.print(f"  ws-meta {one.held[0].chunk.meta or ''}")


def show_records(found: Sequence[HeldRecord]) -> None:
    for record in found:
        h, c = record.held, record.held.chunk
        when = clock(c.timestamp_ms, "milliseconds")
        out.print(f"{c.place}: {h.reason.value}, {c.length} bytes, {when}", style="bold")
        out.print(f"  {h.evidence}; crc {c.crc:08x}, sha-256 {c.piece.hex()}")
        out.print(f"  {'held without its bytes' if record.without_bytes else 'held with its bytes'}; {record.in_log}")


def show_decision(found: HeldPreview, done: Published | Finished | None, *, kept: bool = False) -> None:
    choice = found.plan.held_choice
    assert choice is not None
    why = ", ".join(f"{n} {reason}" for reason, n in sorted(found.reasons.items()))
    out.print(f"{choice.action.value}: {found.waveforms} waveforms, {found.chunks} chunks ({why}), {found.bytes} bytes")
    for waveform_id in choice.ids[:_SHOWN]:
        out.print(f"  {in_shell(waveform_id)}")
    for waveform_id, problem in found.passed_over[:_SHOWN]:
        out.print(f"  passed over: {in_shell(waveform_id)} {problem}")
    for remark in found.plan.remarks:
        out.print(remark)
    if found.more:
        out.print("there are more than one decision takes; say --all, or decide again for the rest")
    show_stages(explain(found.stages))
    if kept:
        _say_how(found.plan.stream.name, found.plan.plan_id)
    elif done is None:
        out.print("nothing was changed; do it with --apply")
    _say_done(done)


def show_kept(preview_id: str, plan: Plan, done: Published | Finished | None) -> None:
    choice = plan.choice
    assert choice is not None
    out.print(f"{len(choice.ids)} waveforms; {choice.note}", highlight=False)
    for waveform_id in choice.ids[:_SHOWN]:
        out.print(f"  {in_shell(waveform_id)}")
    if done is None:
        _say_how(plan.stream.name, preview_id)
    _say_done(done)


def _say_how(stream: str, plan_id: str) -> None:
    command = f"wavestitch held {stream} --preview {plan_id} --apply"
    out.print(f"nothing was changed. Do exactly this: {command}", soft_wrap=True, highlight=False)


def _say_done(done: Published | Finished | None) -> None:
    if isinstance(done, Finished):
        out.print(f"it was done already, as head {done.published.sequence}; what was decided since stands")
    if isinstance(done, Published):
        out.print(f"done: head {done.sequence}, {done.waveforms.get('published', 0)} waveforms published")
