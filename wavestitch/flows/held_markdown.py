"""The preview of a decision about what is held as Markdown, for whoever is asked to approve of it. Decides nothing."""

from __future__ import annotations

from collections.abc import Sequence

from wavestitch.batch.held_decision import HeldPreview
from wavestitch.contracts.harmless import for_markdown
from wavestitch.contracts.held_choice import HeldAction

_MOST = 50
_DOES = {
    HeldAction.REDRIVE: "decides again by the stream's present definition about",
    HeldAction.ACCEPT: "publishes, in spite of what they are held for,",
    HeldAction.PICK: "publishes one copy, and discards the others, of",
    HeldAction.DISCARD: "gives up for good, whoever sends them again,",
    HeldAction.RESTORE: "holds again, as they were before they were discarded,",
}
_UNDONE = {
    HeldAction.DISCARD: "A *restore* undoes it.",
    HeldAction.RESTORE: "A *discard* undoes it.",
}
_STAYS = "What it publishes stays published."


def describe_decision(found: HeldPreview) -> str:
    """First what would happen and why, then whether it can be undone, then which waveforms."""
    choice = found.plan.held_choice
    assert choice is not None, "a preview of a decision has one"
    held_for = ", ".join(f"{n} {for_markdown(reason)}" for reason, n in sorted(found.reasons.items()))
    picked = f" (copy {for_markdown(choice.pick)})" if choice.pick else ""
    said = [
        f"**{for_markdown(choice.who)}** asks to **{choice.action.value}**{picked}: {for_markdown(choice.why)}",
        f"It {_DOES[choice.action]} **{found.waveforms} waveforms**: {found.chunks} chunks ({held_for}), "
        f"{found.bytes / (1 << 20):.1f} MiB. {_UNDONE.get(choice.action, _STAYS)} Nothing is read from Kafka; no "
        "position moves.",
        _list([for_markdown(i) for i in choice.ids], "waveforms"),
    ]
    if found.passed_over:
        passed = [f"{for_markdown(i)} {for_markdown(problem)}" for i, problem in found.passed_over]
        said.append(f"**Passed over**, since it cannot change them:\n\n{_list(passed, 'waveforms')}")
    if found.more:
        said.append("**There are more** than one decision takes: choose *everything*, or decide again for the rest.")
    said += [for_markdown(remark) for remark in found.plan.remarks]
    said.append(
        f"Preview `{found.plan.plan_id}`. Approving does exactly this, about these chunks of these waveforms. It is "
        "void where more of one came meanwhile, somebody decided about one, the stream's definition changed, or "
        "somebody rewound; another ingest does not matter."
    )
    return "\n\n".join(said)


def _list(lines: Sequence[str], what: str) -> str:
    more = [f"- and {len(lines) - _MOST} {what} more"] if len(lines) > _MOST else []
    return "\n".join([*(f"- {line}" for line in lines[:_MOST]), *more])
