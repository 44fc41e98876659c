"""How every planning begins: with the rows that the history lacks, and with one clock. Plans nothing itself."""

from __future__ import annotations

from wavestitch.batch.edges import Edges
from wavestitch.batch.history import history_of, missing_rows
from wavestitch.batch.plan_request import Planning
from wavestitch.batch.walk import Walk
from wavestitch.contracts.batch_stages import RecordHistory


def begin_planning(edges: Edges, *, apply: bool) -> tuple[Walk, Planning]:
    """The walk that the plan's stages go on. Without `apply` they are only noted."""
    clock_ms = edges.clock_ms()
    walk = Walk(edges.stream, edges.log, edges.tables, begin=edges.begin, apply=apply)
    if lost := missing_rows(history_of(edges)):
        walk(RecordHistory(tuple(lost)))
    return walk, Planning(clock_ms, edges.nonce(), edges.code_version, edges.reader_stops())
