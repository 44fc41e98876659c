"""A DAG for each stream that is declared, of a kind that the ingest's DAG stands beside.

Whatever is wrong with a stream's file is shown by `dags/ingest.py`, in place of its DAG; here it costs that stream's
DAG and no other one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from airflow.sdk import DAG, get_parsing_context

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.harmless import harmless
from wavestitch.contracts.stream import Stream
from wavestitch.settings import Settings, declared
from wavestitch.stream_files import Declared, read_streams

log = logging.getLogger(__name__)


def streams_to_make(found: Declared, dag_id: Callable[[str], str]) -> dict[str, Stream | BadInput]:
    """What the streams' files say of which a parse makes DAGs, `dag_id` of the stream's name: all of them; but a task,
    whose process parses its file anew, is of one DAG and needs no other one."""
    of_task = get_parsing_context().dag_id
    if of_task is not None:
        found = replace(found, names=tuple(name for name in found.names if dag_id(name) == of_task))
    return read_streams(found)


def dags_of_streams(settings: Settings, dag_id: Callable[[str], str], make: Callable[[Stream], DAG]) -> dict[str, DAG]:
    """By keys that no name of a module has: a stream chooses its own."""
    made = {}
    for name, said in streams_to_make(declared(settings), dag_id).items():
        if isinstance(said, BadInput):
            continue
        try:
            dag = make(said)
        except Exception:  # whatever is wrong with one stream takes no other one's DAG away
            log.warning("the DAG of %s cannot be made", harmless(name), exc_info=True)
        else:
            made[f"DAG {dag.dag_id}"] = dag
    return made
