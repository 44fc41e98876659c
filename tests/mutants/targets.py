"""Which modules are mutated, and which tests are tried on a mutant: those that run the function that it is in.

Those of a file that is named as the module, and that run the least beside it, are the closest, and those that run the
most of its module know it best. Pure, but for the list of modules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from tests.mutants.reach import FOLDERS, ROOT, RanFile, RanTest

SECONDS = 20.0
"""Of tests for each function; a single one may take longer."""


def modules() -> list[str]:
    found = (p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*.py")) if p.name != "__init__.py")
    return [str(p.relative_to(ROOT)) for p in found]


@dataclass(frozen=True, slots=True)
class Chosen:
    """For a module. `by_function`: the tests of each function that is run, by its qualified name; `of_all`: for what
    stands outside of functions, or in one that nothing runs. `seconds`: of each test, by what was noted."""

    by_function: Mapping[str, tuple[str, ...]]
    of_all: tuple[str, ...]
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def tests(self) -> set[str]:
        return {*self.of_all, *(test for tests in self.by_function.values() for test in tests)}

    def of(self, mutant: str) -> tuple[str, ...]:
        """By its name, which begins with its function's. A function within one that is run is run by it."""
        function = mutant.partition(":")[0]
        while function:
            if function in self.by_function:
                return self.by_function[function]
            function = function.rpartition(".")[0]
        return self.of_all


def chosen_tests(module: str, reach: Mapping[str, RanFile], *, most: float = SECONDS) -> Chosen:
    """`most`: seconds of tests for each function."""
    about: dict[RanTest, set[str]] = {}
    for test in (test for ran in reach.values() for test in ran.tests):
        functions = {name.partition(":")[2] for name in test.functions if name.startswith(f"{module}:")}
        if functions:
            about[test] = functions
    names = sorted(set().union(*about.values()))
    alike = {test: len(_words(module) & _words(test.name.partition("::")[0])) for test in about}
    by_function = {
        name: _within(about, alike, [t for t, some in about.items() if name in some], most) for name in names
    }
    return Chosen(by_function, _within(about, alike, about, most), {test.name: test.seconds for test in about})


def _words(file: str) -> set[str]:
    """Of its name, in the singular."""
    return {word.removesuffix("s") for word in Path(file).stem.removeprefix("test_").split("_")}


def _within(
    about: Mapping[RanTest, set[str]], alike: Mapping[RanTest, int], those: Iterable[RanTest], most: float
) -> tuple[str, ...]:
    """The closest, and beside each of them another one, as long as there is time: the closest and the broadest in
    turns, of each file of tests one and then the next, since tests of one file are mostly about the same thing."""
    left = list(those)
    closest = sorted(left, key=lambda test: (-alike[test], len(test.functions), test.seconds, test.name))
    broadest = sorted(left, key=lambda test: (-len(about[test]), test.seconds, test.name))
    by_file: dict[str, dict[RanTest, None]] = {}
    for test in (test for pair in zip(closest, broadest, strict=True) for test in pair):
        by_file.setdefault(test.name.partition("::")[0], {})[test] = None
    of_all_files = (test for turn in zip_longest(*by_file.values()) for test in turn if test is not None)
    beside = dict.fromkeys(test for pair in zip(closest, of_all_files, strict=True) for test in pair)
    seconds, found = 0.0, list[str]()
    for test in beside:
        if seconds + test.seconds <= most:
            seconds += test.seconds
            found.append(test.name)
    if not found and left:
        found = [min(left, key=lambda test: test.seconds).name]
    return tuple(found)
