"""`--preview ID --reject`: the same for whatever was previewed, be it a rewind, a decision or a promotion. What was
rejected nobody does any more, here or in Airflow.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterable
from typing import Annotated

import typer

from wavestitch import terminal
from wavestitch.batch.edges import Edges
from wavestitch.batch.preview_answer import reject_preview
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.harmless import harmless

Reject = Annotated[bool, typer.Option("--reject", help="Say no to --preview ID: nobody does it any more")]


def reject_kept(
    edges: Edges, preview_id: str | None, *, find: Callable[[str], object], why: str, others: Iterable[object]
) -> None:
    """Say no to what was kept under this id. `find`: raises `BadInput` where nothing was; `others`: what else the
    command was given, of which nothing goes with a rejection."""
    if preview_id is None or any(others):
        raise BadInput("--reject goes with --preview ID, and with --why if anything is to be said; leave the rest out")
    find(preview_id)
    kept = reject_preview(edges, preview_id, by=getpass.getuser(), why=why)
    terminal.out.print(f"rejected by {harmless(kept.who)}: nobody does it any more")
