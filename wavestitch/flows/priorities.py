"""Who goes first where tasks of several runs wait for slots: a number of each, which Airflow fixes as a run is made.

`watch`, which tells of retention, before all; then ingests whose headroom was last seen as red, then amber; then what
somebody asked for (backfills, decisions, rewinds, …), each of which holds one slot at a time and is over some day; then
the other ingests, the one whose run is the oldest first. So no backfill waits for ever behind ingests that have always
more to read, and an ingest that is near retention waits for no more than what has its slot already: the stitching of
one batch (what takes hours has a pool of its own). Decides an order and nothing else: a batch comes out the same in
any.
"""
# mypy: disable-error-code="misc"

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow.task.priority_strategy import PriorityWeightStrategy

from wavestitch.contracts.headroom import Alarm
from wavestitch.settings import load_settings

if TYPE_CHECKING:
    from airflow.models.taskinstance import TaskInstance

WATCH = 100_000
NEAR = {Alarm.GREEN: 0, Alarm.AMBER: 10_000, Alarm.RED: 50_000}
ASKED_FOR = 100
"""Of each task: more than the whole of an ingest weighs, one a task."""

log = logging.getLogger(__name__)


class ByHeadroom(PriorityWeightStrategy):
    """Of an ingest: how many tasks are behind this one, and how near retention is. Registered by the plugin."""

    def get_weight(self, ti: TaskInstance) -> int:
        """Never raises: Airflow asks while it makes a run."""
        behind = ti.task.get_flat_relative_ids(upstream=False)
        return 1 + len(behind) + near_retention(ti.dag_id.partition("_")[2])


BY_HEADROOM = f"{ByHeadroom.__module__}.{ByHeadroom.__qualname__}"
"""As a DAG names it: Airflow knows a registered rule by this alone."""


def near_retention(stream: str) -> int:
    """As `watch` saw it last, whether or not anybody could be told; nothing where nobody can know that here."""
    from wavestitch.batch.kept_told import kept_told  # noqa: PLC0415 - for whoever makes runs alone

    try:
        return NEAR[kept_told(load_settings().landing, stream).seen]
    except Exception:  # who goes first is a help: no run is held up for it
        log.exception("%s: how near retention is cannot be read; its runs wait as others do", stream)
        return 0
