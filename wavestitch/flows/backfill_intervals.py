"""Intervals to backfill, and nothing that runs by itself: a schedule whose ticks only Airflow's backfills ask for.

Airflow offers a backfill only to a DAG with a periodic schedule, and runs none of a DAG that is paused. A DAG with this
one is not paused and waits for a person: the scheduler, which asks without the wish to catch up, is told of no run.
"""
# mypy: disable-error-code="misc"

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.timetables.interval import CronDataIntervalTimetable

if TYPE_CHECKING:
    from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction


class BackfillIntervals(CronDataIntervalTimetable):
    """The time between two ticks of a cron expression. Registered with Airflow by the plugin."""

    can_be_scheduled = False

    @property
    def summary(self) -> str:
        return f"by backfill: {self._expression}"

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        if not restriction.catchup or restriction.latest is None:
            return None
        found: DagRunInfo | None = super().next_dagrun_info(
            last_automated_data_interval=last_automated_data_interval, restriction=restriction
        )
        return found
