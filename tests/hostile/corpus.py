"""The one collection of hostile input, by level. Used as it is by the parser's, the domain's and the broker's tests."""

from __future__ import annotations

from functools import cache

from tests.hostile.header_kinds import header_kinds
from tests.hostile.id_kinds import id_kinds
from tests.hostile.kind import Kind
from tests.hostile.metadata_kinds import metadata_kinds
from tests.hostile.payload_kinds import LIMIT, payload_kinds
from tests.hostile.waveform_kinds import MAX_CHUNKS, waveform_kinds

STREAM_YAML = f"""\
samples: double
allowed_lateness: 1 h
idle: 10 m
reading: {{min_slice: 64}}
limits: {{max_clock_skew: 19000 d, max_waveform_bytes: {LIMIT} B, max_chunks: {MAX_CHUNKS}}}
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {{column: nonfinite_count, max_value: 0}}
"""
"""The stream that the corpus is sent to, but for topic and group."""


@cache
def record_kinds() -> tuple[Kind, ...]:
    """Every kind that is made of records, in the order of the levels."""
    return (*header_kinds(), *id_kinds(), *metadata_kinds(), *payload_kinds(), *waveform_kinds())
