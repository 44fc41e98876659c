"""Wavestitch: chunked waveforms from Kafka, stitched whole and published exactly once, in bounded batches."""

import logging

__version__ = "0.1.0"

# What the Kafka client complains of on its way is in the error that it ends in; who wants it all sets up logging.
logging.getLogger("wavestitch").addHandler(logging.NullHandler())
