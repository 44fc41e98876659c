"""The stream's definition held against that of the batches before it: the one place for all that goes by it.

Whoever plans what would publish, and whoever approves of such a plan or of a rewind, comes past here before anything
else is done. Changes nothing.
"""

from __future__ import annotations

from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.definition_since import refuse_guards_unsaid
from wavestitch.contracts.past_cost import RECENT
from wavestitch.contracts.ports import Tables
from wavestitch.contracts.position import Head
from wavestitch.contracts.stream import Stream


def recent_batches(tables: Tables, head: Head | None) -> list[BatchRow]:
    """The history of the last few heads, newest first."""
    return [] if head is None else tables.batches(since=head.sequence - RECENT + 1)


def refuse_torn(stream: Stream, tables: Tables) -> list[BatchRow]:
    """The history of the last few heads. Raises `Refused` where the definition says nothing any more of what guarded
    the table in them."""
    recent = recent_batches(tables, tables.head())
    refuse_guards_unsaid(stream, recent)
    return recent
