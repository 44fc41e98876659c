"""Which run of a stream failed last: one question to Airflow's database, however many streams and runs there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.models.dagrun import DagRun
from airflow.utils.state import DagRunState
from sqlalchemy import func, select

from wavestitch.contracts.quantities import epoch_ms
from wavestitch.ui.stream_rows import FailedRun

_NS_PER_S = 1_000_000_000


def failed_runs(session: Any, dags: Mapping[str, str]) -> dict[str, FailedRun]:
    """By stream. `dags`: the DAGs that somebody may read, and the stream that each is of."""
    newest = (
        select(func.max(DagRun.id))
        .where(DagRun.dag_id.in_(list(dags)), DagRun.state == DagRunState.FAILED)
        .group_by(DagRun.dag_id)
    )
    asked = select(DagRun.dag_id, DagRun.run_id, DagRun.end_date).where(DagRun.id.in_(newest))
    found: dict[str, FailedRun] = {}
    for dag_id, run_id, ended in session.execute(asked):
        if ended is None:
            continue
        run = FailedRun(dag_id, run_id, epoch_ms(int(ended.timestamp() * _NS_PER_S)))
        known = found.get(dags[dag_id])
        if known is None or known.at_ms < run.at_ms:
            found[dags[dag_id]] = run
    return found
