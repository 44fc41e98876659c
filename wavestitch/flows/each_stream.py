"""A DAG for each stream that is declared, of a kind that the ingest's DAG stands beside.

Whatever is wrong with a stream's file is shown by `dags/ingest.py`, in place of its DAG; here it costs that stream's
DAG and no other one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from airflow.sdk import DAG

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.harmless import harmless
from wavestitch.contracts.stream import Stream
from wavestitch.settings import Settings, declared
from wavestitch.stream_files import read_streams

log = logging.getLogger(__name__)


def dags_of_streams(settings: Settings, make: Callable[[Stream], DAG]) -> dict[str, DAG]:
    """By keys that no name of a module has: a stream chooses its own."""
    made = {}
    for name, said in read_streams(declared(settings)).items():
        if isinstance(said, BadInput):
            continue
        try:
            dag = make(said)
        except Exception:  # whatever is wrong with one stream takes no other one's DAG away
            log.warning("the DAG of %s cannot be made", harmless(name), exc_info=True)
        else:
            made[f"DAG {dag.dag_id}"] = dag
    return made
