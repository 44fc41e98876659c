"""Whether a stream's schedule ever comes: one whose ticks cannot be found would take the DAGs of others away with it.

Decides by looking for one tick before and one after a moment. Never decides what a schedule means: that is Airflow's.
"""

from __future__ import annotations

from datetime import UTC, datetime


def schedule_problem(expression: str, *, key: str = "schedule", now: datetime | None = None) -> str | None:
    """A sentence saying what is wrong with the cron expression of a stream's key; None where it can be used."""
    from croniter import croniter  # type: ignore[import-untyped]  # noqa: PLC0415 - only where there is a schedule

    try:
        ticks = croniter(expression, now or datetime.now(UTC))
        ticks.get_next(datetime)
        ticks.get_prev(datetime)
    except (ValueError, KeyError) as error:
        return f"{key!r} is not valid: {expression!r} never comes or is no cron expression ({error})"
    return None
