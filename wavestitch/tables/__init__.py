"""The Iceberg edge: `stream_tables` is what the steps see, `catalog` how it is found, `read_waveforms` for readers.

Below: `access` (catalog and files, their errors), `commit` (what is written), `lookup` (what is read, and which file
has which id), `held`, `history` (heads and batches), `maintenance`.
"""

from wavestitch.tables.access.own_settings import read_when_asked

read_when_asked()
