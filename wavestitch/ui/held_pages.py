"""The pages of what is held: a list with filters as links, and one waveform in full. Plain values in, text out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

from markupsafe import Markup

from wavestitch.batch.held_page import ROWS_SHOWN, HeldList, HeldOne
from wavestitch.batch.held_request import OF_WAVEFORMS, held_reasons
from wavestitch.batch.held_waveforms import HeldWaveform, Selection
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.partial_waveform import PartialWaveform
from wavestitch.contracts.plain_text import MAX_SAID
from wavestitch.contracts.quantities import EpochMs, Milliseconds, before
from wavestitch.contracts.stream import decide_dag_id
from wavestitch.html_pages import render_page
from wavestitch.ui.links import link

AGES = {"1h": ("1 hour", 3_600_000), "1d": ("1 day", 86_400_000), "7d": ("7 days", 7 * 86_400_000)}
ACTIONS = [action.value for action in HeldAction]
MOST_DRAWN = 1 << 30
"""Bytes that a plot is made of: a waveform may be held for being too large, and each of them is read."""


@dataclass(frozen=True, slots=True)
class Filters:
    """What the address of a list says. `age`: older than one of `AGES`."""

    reason: str = ""
    source: str = ""
    age: str = ""
    after: str = ""

    def selection(self, *, now: EpochMs) -> Selection:
        """Raises `BadInput` for a reason that is none."""
        age = AGES.get(self.age)
        return Selection(
            reasons=held_reasons([self.reason] if self.reason else []),
            source=self.source,
            until_ms=before(now, Milliseconds(age[1])) if age is not None else None,
            after=self.after,
        )

    def link(self, stream: str, **changes: str) -> Markup:
        """The address of a list with these filters, from the beginning unless it says where it goes on."""
        return link(stream, {"reason": self.reason, "source": self.source, "age": self.age, **changes})


def held_list_page(stream: str, filters: Filters, found: HeldList) -> str:
    sources = sorted({one.source for one in found.waveforms if one.source} | ({filters.source} - {""}))
    reasons = [r.value for r in OF_WAVEFORMS]
    choices = [
        ("Held for", [("anything", ""), *((r, r) for r in reasons)], "reason", filters.reason),
        (
            "Newest record older than",
            [("any age", ""), *((said, a) for a, (said, _) in AGES.items())],
            "age",
            filters.age,
        ),
        ("Source", [("any", ""), *((s, s) for s in sources)], "source", filters.source),
    ]
    return render_page(
        "held",
        root="../",
        here="streams",
        title=f"Held of {stream}",
        stream=stream,
        found=found,
        filters=[
            (title, [(said, filters.link(stream, **{key: value}), value == now) for said, value in offered])
            for title, offered, key, now in choices
        ],
        next=filters.link(stream, after=found.after) if found.after is not None else "",
        states=_states,
        link_of=lambda one: link(f"{stream}/one", {"id": one.waveform_id}),
        dag=decide_dag_id(stream),
        encoded=partial(quote, safe="", errors="replace"),
        actions=ACTIONS,
        most_said=MAX_SAID,
    )


def held_one_page(stream: str, found: HeldOne, *, first: int = 0, copy: str = "first") -> str:
    """With as many chunks as a page has, from number `first` on, and the plot of this copy."""
    rows, end = found.rows(), first + ROWS_SHOWN
    shown, about = rows[first:end], drawn_of(found)
    texts = list(dict.fromkeys(h.chunk.meta or "" for h, _ in shown))
    one = {"id": found.waveform.waveform_id, "copy": "" if copy == "first" else copy}
    return render_page(
        "held_one",
        root="../../",
        here="streams",
        title=f"Held: {found.waveform.waveform_id}",
        stream=stream,
        found=found,
        rows=shown,
        more=max(0, len(rows) - end),
        next=link("one", {**one, "after": str(end)}) if end < len(rows) else "",
        about=None if isinstance(about, str) else about,
        not_drawn=about if isinstance(about, str) else "",
        view_link=link("view", one),
        copies=[(name, link("one", {**one, "copy": name}), name == copy) for name in ("first", "last")],
        copy=copy,
        texts=texts,
        number_of={text: n for n, text in enumerate(texts, start=1)},
        dag=decide_dag_id(stream),
        encoded=partial(quote, safe="", errors="replace"),
        actions=ACTIONS,
        most_said=MAX_SAID,
    )


def drawn_of(found: HeldOne) -> PartialWaveform | str:
    """What a plot shows of it, or why there is none."""
    about = found.partial
    if about is None:
        return "There is no plot: no chunk of this copy counts by the stream's present definition and has its bytes."
    if (size := sum(at.chunk.length for at in about.chunks)) > MOST_DRAWN:
        return f"There is no plot: the chunks have {size} bytes, more than the {MOST_DRAWN} that a page reads."
    return about


def _states(one: HeldWaveform) -> str:
    return ", ".join(sorted({state.value for state in one.states}))
