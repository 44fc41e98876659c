"""How many bytes the rows of a Parquet file take where they are unpacked, by its footer alone.

Neither a file's size nor what its footer says of pages tells it: a flat line of a million samples is a few bytes of
both, since samples are packed by their differences and texts that repeat stand once. Each value takes its type's width
at least. Decides nothing.
"""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_WIDTH_OF_TEXT = 4


def unpacked_bytes(group: Any) -> int:
    """Of a row group, as its metadata say it (pyarrow's `RowGroupMetaData`)."""
    columns = (group.column(n) for n in range(group.num_columns))
    return sum(
        max(c.total_uncompressed_size, c.num_values * _WIDTHS.get(c.physical_type, _WIDTH_OF_TEXT)) for c in columns
    )


def unpacked_file(table: Table, file: DataFile) -> int:
    """Of a file, of which the footer is read."""
    with table.io.new_input(file.file_path).open() as source:
        found = pq.ParquetFile(source).metadata
        return sum(unpacked_bytes(found.row_group(n)) for n in range(found.num_row_groups))
