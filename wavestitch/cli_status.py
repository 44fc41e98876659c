"""The commands that look at all streams: `status`, for whoever asks, and `watch`, for those who want to be told."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from wavestitch import console_status
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.stream_facts import StreamFacts, stream_facts
from wavestitch.batch.watch import freshness_to_json, room_to_json, watch_streams, watched_line, watched_to_json
from wavestitch.contracts.quantities import clock
from wavestitch.exit_codes import TRY_AGAIN
from wavestitch.settings import stream_names
from wavestitch.terminal import err, lines, out

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts")]


class _OnStderr(logging.Handler):
    """The log of who looks by hand or by cron: there is no other one."""

    def emit(self, record: logging.LogRecord) -> None:
        err.print(lines(self.format(record).splitlines()), highlight=False)


@contextmanager
def _logged_on_stderr() -> Iterator[None]:
    """For as long as somebody looks: who calls a command from a process of his own has a log of his own behind it."""
    of_batches, handler = logging.getLogger("wavestitch.batch"), _OnStderr(logging.WARNING)
    of_batches.addHandler(handler)
    try:
        yield
    finally:
        of_batches.removeHandler(handler)


def status(as_json: AsJson = False) -> None:
    """Where every stream stands: head, backlog, how fresh it is, how long retention leaves it, what is held."""
    deployment = Deployment()
    found = [_status_of(stream_facts(deployment, name)) for name in stream_names(deployment.settings)]
    if as_json:
        print(json.dumps(found, indent=1))
    else:
        console_status.show_status(found)


def watch(as_json: AsJson = False) -> None:
    """Look at every stream once, at headroom and freshness, and tell those of [notify] what is new. For a cron job."""
    with _logged_on_stderr():
        deployment = Deployment()
        found = watch_streams(deployment, stream_names(deployment.settings))
    if as_json:
        print(json.dumps([watched_to_json(seen) for seen in found], indent=1))
    for seen in () if as_json else found:
        out.print(watched_line(seen), highlight=False)
    if any(seen.problem or not seen.delivered for seen in found):
        raise typer.Exit(TRY_AGAIN)


def _status_of(facts: StreamFacts) -> dict[str, Any]:
    found: dict[str, Any] = {"stream": facts.name}
    if facts.problem:
        found["problem"] = facts.problem
    if facts.head is not None:
        found |= {
            "generation": facts.head.generation,
            "head": facts.head.sequence,
            "backlog": facts.backlog,
            "headroom": room_to_json(facts.room),
            "freshness": freshness_to_json(facts.room),
            "open": facts.open,
            "quarantined": facts.quarantined,
            "watermark": clock(facts.head.watermark_ms) if facts.head.watermark_ms else "",
            "remarks": list(facts.remarks),
        }
    return found
