"""Starts a stream's ingest by its lag, and nothing else: what is to be started comes through an XCom, which whoever may
edit a run can change, and the right that is used is the DAG's and not theirs.
"""
# mypy: disable-error-code="misc"

from __future__ import annotations

from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator

from wavestitch.contracts.errors import BadInput, WavestitchError
from wavestitch.contracts.stream import ingest_dag_id
from wavestitch.settings import Settings, load_settings, load_stream, stream_names


class StartIngest(TriggerDagRunOperator):
    """Triggers the ingest of a declared stream that says `trigger: lag`. Raises `BadInput` for any other id."""

    def execute(self, context: Any) -> None:
        settings = load_settings()
        # Of a name that is declared: an id never becomes a path.
        name = next((n for n in stream_names(settings) if ingest_dag_id(n) == self.trigger_dag_id), None)
        if name is None or not _starts_by_lag(settings, name):
            raise BadInput(
                f"{ascii(self.trigger_dag_id)[:120]} is not the ingest of a declared stream that says trigger: lag, "
                "and nothing else is started here; look at who changed the XCom of the task `behind`"
            )
        super().execute(context)


def _starts_by_lag(settings: Settings, name: str) -> bool:
    try:
        return load_stream(settings, name).trigger == "lag"
    except WavestitchError:
        return False
