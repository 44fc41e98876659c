"""Wavestitch: chunked waveforms from Kafka, stitched whole and published exactly once, in bounded batches."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wavestitch.reading.stream import OpenStream

__version__ = "0.1.0"

# What the Kafka client complains of on its way is in the error that it ends in; who wants it all sets up logging.
logging.getLogger("wavestitch").addHandler(logging.NullHandler())


def open(stream: str, settings: Any = None) -> OpenStream:
    """A stream's published waveforms, for reading: `wavestitch.open("ecg").waveforms(source="ward-7")`.

    `settings`: `wavestitch.settings.Settings`; those that the command line finds, unless given. Raises `BadInput` where
    there is no such stream. Nothing that the process shares is changed by it, nor what pyiceberg does for other tables.
    """
    from wavestitch.tables.access.own_settings import be_guest  # noqa: PLC0415

    be_guest()  # before anything imports what asks for it
    from wavestitch.reading.stream import open_stream  # noqa: PLC0415 - whoever does not read needs none of it

    return open_stream(stream, settings, guest=True)
