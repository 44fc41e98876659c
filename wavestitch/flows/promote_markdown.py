"""The preview of a promotion as Markdown, for whoever is asked to approve of it. Decides nothing."""

from __future__ import annotations

from collections.abc import Sequence

from wavestitch.batch.promote import PromotionPreview
from wavestitch.contracts.definition_change import Change
from wavestitch.contracts.harmless import for_markdown

_MOST = 50


def describe_promotion(found: PromotionPreview) -> str:
    """First what would happen and why, then to which waveforms, then what would void it."""
    told = found.promotion
    counts = ", ".join(f"{n} {name}" for name, n in sorted(found.counts.items()))
    said = [
        f"**{for_markdown(told.who)}** asks to **promote** {found.plan.records} offsets: {for_markdown(told.why)}",
        f"It replaces what is published: **{told.says}**, in one commit. Compared: {counts}. No position moves. "
        f"`wavestitch undo {found.plan.stream.name}` puts the rows of before back, while maintenance keeps them.",
        _list([_line(*one) for one in found.changes]),
    ]
    if found.passed_over:
        passed = [f"{for_markdown(i)} {for_markdown(problem)}" for i, problem in found.passed_over]
        said.append(f"**Passed over**, and left as they are:\n\n{_list(passed)}")
    said += [for_markdown(remark) for remark in found.remarks[:_MOST]]
    said.append(
        f"Preview `{found.plan.plan_id}`. Approving does exactly this, or nothing: it is void where one of these "
        "waveforms was published, decided about or sent otherwise meanwhile, the stream's definition changed, somebody "
        "rewound, or the log lost some of the range; another ingest does not matter."
    )
    return "\n\n".join(said)


def _line(waveform_id: str, change: Change, why: str) -> str:
    return f"{for_markdown(waveform_id)}: {change}{f', {for_markdown(why)}' if why else ''}"


def _list(lines: Sequence[str]) -> str:
    more = [f"- and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    return "\n".join([*(f"- {line}" for line in lines[:_MOST]), *more])
