"""A record that was taken out of a raw batch, in the shape of the client's own message; and how large one may be."""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import TIMESTAMP_CREATE_TIME

from wavestitch.contracts.quantities import Offset
from wavestitch.contracts.record_columns import RecordColumns

MOST_RECORD_BYTES = 64 << 20
"""Value, key and headers of one record, together: what a reader will hold in memory of it."""
MOST_ASIDE_BYTES = 8 << 20
"""Key and headers of one record, together, as they are stored. They are texts while they are judged, which take up to
five times their bytes, and they are laid down beside the payload: so one record never takes more than a reader has."""
MOST_HEADERS = 1 << 16
"""Of one record. Empty ones take two bytes of a batch and a hundred of memory; of more than 100,000 the client shows
none, as if there were none."""


@dataclass(frozen=True, slots=True)
class RawMessage:
    """A record, with the answers that a client's message gives. `unreadable`: why it is none, else None; its value is
    then the raw batch, where that is small enough to keep."""

    offset_: Offset
    timestamp_: tuple[int, int]
    epoch: int
    key_: bytes | None
    value_: bytes | None
    headers_: list[tuple[bytes, bytes | None]]
    unreadable: str | None = None

    def __len__(self) -> int:
        return len(self.value_ or b"")

    def offset(self) -> int:
        return self.offset_

    def leader_epoch(self) -> int:
        return self.epoch

    def timestamp(self) -> tuple[int, int]:
        return self.timestamp_

    def key(self) -> bytes | None:
        return self.key_

    def value(self) -> bytes | None:
        return self.value_

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        """As the client: `SystemError` for a name that is not UTF-8, None where there are none."""
        try:
            return [(name.decode(), value) for name, value in self.headers_] or None
        except UnicodeDecodeError as error:
            raise SystemError("the name of a header is not UTF-8") from error


def message_at(records: RecordColumns, row: int, epoch: int) -> RawMessage:
    """One of the records that were found in columns, by itself."""
    stamp = int(records.times_ms[row])
    return RawMessage(
        Offset(int(records.offsets[row])),
        (TIMESTAMP_CREATE_TIME, stamp) if stamp else (0, 0),
        epoch,
        records.text(records.keys, row),
        records.text(records.values, row),
        records.headers_of(row),
    )
