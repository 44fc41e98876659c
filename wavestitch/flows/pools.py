"""The pools that tasks wait in for what there is little of: a Spark, readers at the brokers, hours of one processor.

Airflow starts no task whose pool is not there, and says so only beside the DAG. So whatever part of Airflow starts
makes those that the settings name, once: what somebody changed of one since stays.
"""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from airflow.listeners import hookimpl

from wavestitch.contracts.errors import WavestitchError
from wavestitch.settings import Settings, load_settings
from wavestitch.settings_sections import ANY_POOL

ABOUT = "Made by Wavestitch as its settings say (docs/settings.md); change its slots here."

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pools:
    """By name. `spark`: of every task that may start one; `readers`: of every task that does nothing but read a batch's
    records; `comparisons`: of every task that reads and stitches a whole range by itself."""

    spark: str = ANY_POOL
    readers: str = ANY_POOL
    comparisons: str = ANY_POOL

    @classmethod
    def of(cls, settings: Settings) -> Pools:
        return cls(spark=settings.spark.pool, readers=settings.kafka.pool, comparisons=settings.verify.pool)


ANY_POOLS = Pools()


@hookimpl
def on_starting(component: Any) -> None:
    """Called by Airflow's scheduler, triggerer and DAG processor as they start; and by each task, which has no
    database. Never raises: a pool that is lacking is shown by Airflow beside the DAGs that wait for it."""
    if getattr(component, "__tablename__", "") != "job":
        return
    try:
        make_pools(load_settings().pools)
    except WavestitchError as error:
        log.warning("the pools of the settings are not made: %s", error.message)
    except Exception:
        log.exception("the pools of the settings are not made; `airflow pools set NAME SLOTS ''` makes one")


def make_pools(wanted: dict[str, int]) -> None:
    """Those that are not there yet, with so many slots."""
    from airflow.models.pool import Pool  # noqa: PLC0415 - Airflow's database, which tasks have none of
    from airflow.utils.session import create_session  # noqa: PLC0415
    from sqlalchemy import select  # noqa: PLC0415
    from sqlalchemy.exc import IntegrityError  # noqa: PLC0415

    for name, slots in wanted.items():
        try:
            with create_session() as session:
                if session.scalar(select(Pool.id).where(Pool.pool == name)) is None:
                    session.add(Pool(pool=name, slots=slots, description=ABOUT, include_deferred=False))
        except IntegrityError:
            log.info("pool %s was made by another part of Airflow at the same moment", name)
