"""One look at a stream for whoever draws and warns: after each commit, and whenever somebody watches.

The figures are those of this moment and of the history, never of an event: a look that was lost costs nothing but
itself, and a commit is counted once, by whichever look comes next. Invariant: nobody who tells metrics fails by it, or
waits for it longer than `[metrics]` says.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from wavestitch.batch.deployment import Deployment, plain_name
from wavestitch.batch.history import whole_history
from wavestitch.batch.kept_told import counted_folder, keep_counted, kept_counted
from wavestitch.batch.metric_sinks import send_otlp, write_textfile
from wavestitch.batch.stream_facts import StreamFacts, table_facts, with_ends
from wavestitch.contracts.errors import WavestitchError
from wavestitch.contracts.harmless import harmless
from wavestitch.contracts.headroom import Room
from wavestitch.contracts.metrics import Counted, Seen, samples_of
from wavestitch.contracts.quantities import EpochMs, epoch_ms
from wavestitch.folder_lock import folder_lock
from wavestitch.write_once import disk_errors

_MOST_ROWS = 1000
"""Commits that one look counts, the newest: where nobody has looked for longer, it is too late to draw the others."""

log = logging.getLogger(__name__)


def tell_metrics(deployment: Deployment, stream: str, *, room: Room | None = None) -> None:
    """`room`: as it was seen just now; looked for where it is not given. One sentence in the log says what failed."""
    wanted = deployment.settings.metrics
    if not wanted.wanted:
        return
    ended: list[list[str]] = []
    # In a thread: a folder on a server that is gone holds whoever writes there for as long as it likes.
    telling = threading.Thread(
        target=lambda: ended.append(_tell(deployment, stream, room)), name="metrics", daemon=True
    )
    telling.start()
    telling.join(wanted.timeout)
    problems = ended[0] if ended else [f"not done within {wanted.timeout} s (`timeout` of [metrics])"]
    if problems:
        log.warning("%s: the metrics are not those of now: %s", harmless(stream), harmless("; ".join(problems)))


def _tell(deployment: Deployment, stream: str, room: Room | None) -> list[str]:
    """What failed, as sentences."""
    problems: list[str] = []
    with _said(problems):
        settings, name = deployment.settings, plain_name(stream)
        facts = table_facts(deployment, name)
        facts = replace(facts, room=room) if room is not None else with_ends(deployment, facts)
        with disk_errors("counting for the metrics"), folder_lock(counted_folder(settings.landing, name)):
            now = epoch_ms(time.time_ns())
            counted = _count(deployment, name, now=now, problems=problems)
            samples = samples_of(_seen(facts), counted, now=now)
            if (folder := settings.metrics.textfile) is not None:
                with _said(problems):  # under the lock, so that no older figures come after newer ones
                    write_textfile(folder, name, samples)
        if settings.metrics.otlp is not None:
            with _said(problems):
                send_otlp(settings.metrics, name, samples, since=counted.since_ms, now=now)
    return problems


@contextmanager
def _said(problems: list[str]) -> Iterator[None]:
    """Whatever goes wrong inside is a sentence; of an error of others its kind, since its text may have anything."""
    try:
        yield
    except WavestitchError as error:
        problems.append(error.message)
    except Exception as error:  # whoever tells has work of its own to finish
        problems.append(type(error).__name__)


def _count(deployment: Deployment, name: str, *, now: EpochMs, problems: list[str]) -> Counted:
    """Whoever calls has the lock: the head is looked at once more, since another look may have counted meanwhile."""
    landing = deployment.settings.landing
    counted = kept_counted(landing, name)
    with _said(problems):
        head = deployment.tables(name).head()
        if head is None or head.sequence == counted.sequence:
            return counted
        begun = counted if counted.sequence >= 0 else replace(counted, since_ms=now)
        known = begun.beginning_at(head.sequence)
        since = max(known.sequence + 1, head.sequence - _MOST_ROWS + 1)
        rows = whole_history(deployment.history(name), since=since)
        counted = known.with_rows(rows, until=head.sequence, partitions=head.positions)
        keep_counted(landing, name, counted)
    return counted


def _seen(facts: StreamFacts) -> Seen:
    head = facts.head
    not_begun = head is None and bool(facts.topic)
    return Seen(
        up=facts.room is not None or not_begun,
        room=facts.room,
        open=facts.waiting,
        open_ms=facts.waiting_since,
        held=head.held.counts if head is not None and head.held is not None else {},
        committed_ms=head.committed_ms if head is not None else None,
        last=next((row.seconds for row in facts.batches if row.seconds), {}),
    )
