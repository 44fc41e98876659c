"""What people write about held waveforms, in a form or behind a command, as what it means. Refuses, never guesses."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.history import History, whole_history
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.instant import parse_time
from wavestitch.contracts.quantities import epoch_ms
from wavestitch.contracts.reasons import OF_RECORDS, Reason

LOOKS = ("list", "show", "record")
"""What changes nothing."""
OF_WAVEFORMS = tuple(r for r in Reason if r not in OF_RECORDS)


def held_selection(
    history: History,
    *,
    ids: Collection[str] = (),
    reasons: Collection[str] = (),
    source: str = "",
    since: str | None = None,
    until: str | None = None,
    batch: str | None = None,
    after: str = "",
) -> Selection:
    """Which held waveforms are meant; all of them, where nothing is said."""
    return Selection(
        ids=tuple(ids),
        reasons=held_reasons(reasons),
        source=source,
        since_ms=None if since is None else epoch_ms(parse_time(since)),
        until_ms=None if until is None else epoch_ms(parse_time(until)),
        decisions=None if batch is None else frozenset(r.decision for r in whole_history(history, plan_id=batch)),
        after=after,
    )


def held_reasons(reasons: Collection[str]) -> frozenset[Reason]:
    known = {r.value for r in OF_WAVEFORMS}
    for text in reasons:
        if text not in known:
            raise BadInput(f"--reason {ascii(text)[:80]} is none of a waveform; there are {', '.join(sorted(known))}")
    return frozenset(map(Reason, reasons))


def held_action(text: str) -> HeldAction:
    if text not in {a.value for a in HeldAction}:
        known = ", ".join((*LOOKS, *(a.value for a in HeldAction)))
        raise BadInput(f"nothing is done by {ascii(text)[:80]}; there are {known}")
    return HeldAction(text)


def selection_of_form(history: History, form: Mapping[str, Any]) -> Selection:
    """What a form says, whose empty fields are None."""
    said = {name: (form[name] or "").strip() for name in ("source", "since", "until", "batch")}
    return held_selection(
        history,
        ids=form["ids"] or (),
        reasons=form["reasons"] or (),
        source=said["source"],
        since=said["since"] or None,
        until=said["until"] or None,
        batch=said["batch"] or None,
    )
