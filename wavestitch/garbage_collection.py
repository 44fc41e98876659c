"""When Python looks for garbage in cycles: not while work makes many objects that stay. Decides nothing else."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Around work that makes an object a chunk, a snapshot or a module, and no cycles: looking for some, over and over
    and through all that was imported, takes about as long as the work."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextmanager
def imports_that_stay() -> Iterator[None]:
    """Around the imports of a process that is just beginning: what it has loaded is never looked through again."""
    with collection_paused():
        yield
        gc.freeze()


@contextmanager
def nothing_looked_through_at_the_end() -> Iterator[None]:
    """Around all that a process does: Python looks for garbage in everything that is loaded as it ends, and takes
    cycles apart one by one, which the kernel does at once. What ends with its last reference, and what `atexit` has,
    ends as ever."""
    try:
        yield
    finally:
        gc.freeze()
