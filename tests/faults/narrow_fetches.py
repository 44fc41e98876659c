"""The client fetches, and the reader takes, a few records at a time: what happens in the middle of a reading then is
in the middle of something, although test topics are small. Imports little: a reader process has little memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from consumers import range_scan
from wavestitch.kafka import client_settings

NARROW = {"max.partition.fetch.bytes": 1024, "queued.max.messages.kbytes": 1}
NARROW_RECORDS = 4


@contextmanager
def narrow_fetches() -> Iterator[None]:
    """The client fetches, and the reader takes, a few records at a time.

    Otherwise a small test topic is in the client's queue before its first record is looked at, and nothing that
    happens in the middle of reading would be in the middle of anything.
    """
    settings = client_settings._READER
    before, counts = dict(settings), (range_scan._FIRST_RECORDS, range_scan._MOST_RECORDS)
    settings.update(NARROW)
    range_scan._FIRST_RECORDS = range_scan._MOST_RECORDS = NARROW_RECORDS
    try:
        yield
    finally:
        settings.clear()
        settings.update(before)
        range_scan._FIRST_RECORDS, range_scan._MOST_RECORDS = counts
