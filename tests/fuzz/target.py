"""What a fuzzer is given: a function of bytes that raises where the product is wrong, and seeds from which to begin.

A target never raises for what the product refuses with an error of its own tree and one sentence; every other
exception, and every answer that the target's own oracle does not agree with, is a find.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from wavestitch.contracts.harmless import is_plain

MOST_MESSAGE = 8001
_MOST_GROWTH_KIB = 320 << 10


@dataclass(frozen=True, slots=True)
class Target:
    """`instrument`: modules whose branches lead the search. `words`: what is worth being put in. `longest`: bytes of
    one input. `isolated`: parsers in C, whose crash ends the process, or which take memory that has to be measured."""

    name: str
    run: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    words: tuple[str, ...] = ()
    longest: int = 4096


def check_sentence(message: str) -> None:
    """What an error says may be shown to anybody."""
    assert 0 < len(message) <= MOST_MESSAGE, f"a message of {len(message)} characters"
    assert is_plain(message), ascii(message)


@contextmanager
def bounded_memory(most_kib: int = _MOST_GROWTH_KIB) -> Iterator[None]:
    """The process has not grown above what it ever had, by more than this."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown <= most_kib, f"{grown >> 10} MiB more were taken at once"
