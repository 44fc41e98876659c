"""What a stream may say of its samples: their type in the table, and how they are encoded. Quick to load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

SampleType = Literal["int", "long", "float", "double"]
"""As Iceberg names them."""
Encoding = Literal["fast", "small"]
"""`fast`: split by bytes, LZ4. `small`: whole numbers as packed differences, others split by bytes, zstd."""

WIDER: Mapping[SampleType, SampleType] = {"int": "long", "float": "double"}
"""Iceberg's promotions: what a table's type can become, without a file being written anew."""


def promoted(table: SampleType, declared: SampleType) -> SampleType | None:
    """What the type of a table becomes for a stream that declares another: the wider of both, or None where neither
    can become the other."""
    if table == declared or WIDER.get(declared) == table:
        return table
    return declared if WIDER.get(table) == declared else None
