"""Processes that begin with everything imported and nothing open: as new as one that is started anew, in a moment."""

from __future__ import annotations

import multiprocessing
from typing import Any

# All of them, since whoever needs one first starts the server for the rest of the session.
_IMPORTED = [
    "tests.domain.table_races",
    "tests.faults.local_faults_batch",
    "tests.faults.killed_batch",
    "tests.loaded_gate",
    "wavestitch.tables.read_waveforms",
    "pyiceberg.io.pyarrow",
]


def clean_processes() -> Any:
    """Makes them, as `multiprocessing` does."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    return context
