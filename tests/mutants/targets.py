"""Which modules are mutated, and which tests are tried on a module's mutants: those that run its functions.

Of each function those files that run the least beside it are the closest, and those that run the most of its module
know it best. Pure, but for the list of modules.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.mutants.reach import FOLDERS, ROOT, Ran

_CLOSEST, _BROADEST = 3, 3
_MOST_SECONDS = 40.0
_HISTORIES = (
    "tests/histories/test_histories.py::test_what_is_done_on_purpose_shows_nothing_where_the_product_is_sound",
)
"""For what decides: they judge by the log and the tables alone."""


def modules() -> list[str]:
    found = (p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*.py")) if p.name != "__init__.py")
    return [str(p.relative_to(ROOT)) for p in found]


def chosen_tests(module: str, reach: Mapping[str, Ran]) -> tuple[str, ...]:
    """Files of tests, and single ones; the quick first. Empty where none runs anything of it."""
    about = [ran for ran in reach.values() if module in ran.functions and ran.seconds <= _MOST_SECONDS]
    chosen: set[str] = set()
    for function in {name for ran in about for name in ran.functions[module]}:
        those = [ran for ran in about if function in ran.functions[module]]
        chosen |= {ran.file for ran in sorted(those, key=_beside)[:_CLOSEST]}
        chosen |= {ran.file for ran in sorted(those, key=lambda ran: _knows(ran, module))[:_BROADEST]}
    histories = _HISTORIES if chosen and module.startswith(("wavestitch/contracts/", "wavestitch/batch/")) else ()
    return (*sorted(chosen, key=lambda file: (reach[file].seconds, file)), *histories)


def _beside(ran: Ran) -> tuple[int, float]:
    return sum(map(len, ran.functions.values())), ran.seconds


def _knows(ran: Ran, module: str) -> tuple[int, float]:
    return -len(ran.functions[module]), ran.seconds
