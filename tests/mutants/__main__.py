"""Mutants of the product, and the tests that are to kill them: `python -m tests.mutants [--minutes N] [NAME …]`.

NAME: modules whose files have one of these words. Goes on where it stopped: what was tried stands in
`.wavestitch/mutants`, and in `account.json` once a module is through. Of a module with many mutants a sample is tried,
the same one each time.
Ends with 1 where a survivor has no reason.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.mutants.account import Tried, add_to_account, digest_of, read_account, score
from tests.mutants.in_copy import TESTS, copy_tree, killed_in_copy
from tests.mutants.mutant import Mutant, mutants_of
from tests.mutants.reach import ROOT, find_reach, read_reach
from tests.mutants.targets import SECONDS, chosen_tests, modules
from tests.mutants.trial import Subject, Trial

MOST = 10
"""Of each module, those that its name draws: all of them would take days."""
_AT_ONCE = 60
"""Modules: their mutants take memory, and minutes to make."""
STATE = ROOT / ".wavestitch" / "mutants"


def drawn(module: str, mutants: Sequence[Mutant]) -> list[Mutant]:
    """All of them, in an order that is the module's: a larger sample begins with a smaller one."""
    return random.Random(module).sample(mutants, len(mutants))


def left_to_try(names: Sequence[str], *, most: int) -> list[str]:
    """The modules whose source is another one than the account's, or of which fewer were tried."""
    known = read_account()
    return [
        module
        for module in modules()
        if any(name in module for name in names or [""])
        and (
            module not in known
            or known[module].source != digest_of((ROOT / module).read_text(encoding="utf-8"))
            or known[module].tried < min(most, known[module].made)
        )
    ]


class _Kept:
    """What was tried of a module whose account is not closed yet: a line for each mutant."""

    def __init__(self, module: str, source: str) -> None:
        name = module.removesuffix(".py").replace("/", ".")
        self._path = STATE / f"{name}-{source}.jsonl"

    def read(self) -> dict[str, bool]:
        lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        return dict(json.loads(line) for line in lines if line.endswith("]"))

    def add(self, mutant: Mutant, killed: bool) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([mutant.name, killed]) + "\n")

    def close(self) -> None:
        self._path.unlink(missing_ok=True)


class _Module:
    """One that is tried: a sample of its mutants, and what became of them so far."""

    def __init__(self, name: str, *, most: int, again: bool) -> None:
        """`again`: those that survived are tried once more."""
        self.name, self.path = name, ROOT / name
        source = self.path.read_text(encoding="utf-8")
        self._digest = digest_of(source)
        self._mutants = drawn(name, mutants_of(source))
        self.kept = _Kept(name, self._digest)
        self._done = self.kept.read()
        known = read_account().get(name)
        if known is not None and known.source == self._digest:
            most = max(most, known.tried)
            self._done |= {m.name: m.name not in known.survivors for m in self._mutants[: known.tried]}
        if again:
            self._done = {mutant: killed for mutant, killed in self._done.items() if killed}
        self._sample = self._mutants[:most]

    @property
    def left(self) -> list[Mutant]:
        return [m for m in self._sample if m.name not in self._done]

    def note(self, mutant: Mutant, killed: bool) -> None:
        self._done[mutant.name] = killed
        self.kept.add(mutant, killed)

    def close(self) -> None:
        """Into the account; where anything is left, nothing yet."""
        if self.left:
            return
        survivors = [m.name for m in self._sample if not self._done[m.name]]
        killed = len(self._sample) - len(survivors)
        tried = Tried(self._digest, len(self._mutants), len(self._sample), killed, dict.fromkeys(survivors, ""))
        self.kept.close()
        print(_row(self.name, add_to_account(self.name, tried)), flush=True)


def try_modules(names: Sequence[str], *, most: int, until: float, seconds: float, again: bool = False) -> None:
    """All that is left of these modules, as long as there is time. `seconds`: of tests for each function."""
    reach = read_reach()
    found: dict[str, _Module] = {}
    subjects: list[Subject] = []
    for name in names:
        module, tests = _Module(name, most=most, again=again), chosen_tests(name, reach, most=seconds)
        module.close()
        if module.left and name in TESTS:
            _try_in_copy(module, until=until)
        elif module.left and not tests.tests:
            print(f"{name}: no unit test and none of the domain runs anything of it in its own process", flush=True)
        elif module.left:
            dotted = name.removesuffix(".py").replace("/", ".")
            found[dotted] = module
            subjects.append(Subject(dotted, module.path, tests, module.left))
    if not subjects:
        return
    print(f"{sum(len(s.mutants) for s in subjects)} mutants of {len(subjects)} modules are to be tried", flush=True)
    for subject, mutant, killed in Trial(subjects, STATE / f"trial-{os.getpid()}.log").killed():
        module = found[subject.module]
        module.note(mutant, killed)
        if not killed:
            print(f"    survived in {subject.module}: {mutant.name}", flush=True)
        module.close()
        if time.monotonic() > until:
            break


def _try_in_copy(module: _Module, *, until: float) -> None:
    print(f"{len(module.left)} mutants of {module.name} are to be tried in a copy of the tree", flush=True)
    with TemporaryDirectory(dir=STATE) as copy:
        copy_tree(Path(copy))
        for mutant, killed in killed_in_copy(module.name, TESTS[module.name], module.left, copy=Path(copy)):
            module.note(mutant, killed)
            if not killed:
                print(f"    survived in {module.name}: {mutant.name}", flush=True)
            if time.monotonic() > until:
                break
    module.close()


def main(argv: Sequence[str]) -> int:
    ask = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    ask.add_argument("names", nargs="*", metavar="NAME")
    ask.add_argument("--minutes", type=float, default=24 * 60.0, help="stop after so long; the next call goes on")
    ask.add_argument("--most", type=int, default=MOST, help=f"of each module (default {MOST})")
    ask.add_argument("--seconds", type=float, default=SECONDS, help=f"of tests for each function (default {SECONDS})")
    ask.add_argument("--again", action="store_true", help="try the survivors of modules that were tried")
    options = ask.parse_args(argv)
    until = time.monotonic() + options.minutes * 60
    if options.minutes and not find_reach(until=until):
        return _sum_up()
    wanted = [m for m in modules() if any(n in m for n in options.names or [""])]
    try:
        names = wanted if options.again else left_to_try(options.names, most=options.most)
        for n in range(0, len(names), _AT_ONCE):
            if time.monotonic() < until:
                some, seconds = names[n : n + _AT_ONCE], options.seconds
                try_modules(some, most=options.most, until=until, seconds=seconds, again=options.again)
    except RuntimeError as error:
        print(error, flush=True)
    return _sum_up()


def _row(module: str, tried: Tried) -> str:
    unexplained = sum(not why for why in tried.survivors.values())
    share = tried.killed / max(tried.tried, 1)
    return (
        f"{module}: {tried.made} made, {tried.tried} tried, {tried.killed} killed ({share:.1%}), "
        f"{len(tried.survivors)} survive, {unexplained} without a reason"
    )


def _sum_up() -> int:
    known, left = read_account(), left_to_try([], most=MOST)
    done = [tried for module, tried in known.items() if module not in left_to_try([], most=0)]
    tried, killed = sum(t.tried for t in done), sum(t.killed for t in done)
    without = sum(not why for t in done for why in t.survivors.values())
    print(
        f"{len(done)} of {len(modules())} modules: {sum(t.made for t in done)} mutants made, {tried} tried, {killed} "
        f"killed, {tried - killed} survive, {sum(t.equivalent for t in done)} of them equivalent, {without} without a "
        f"reason: {score(done):.1%} of those that differ are killed"
    )
    if left:
        print(f"to be tried on the present code: {', '.join(left)}")
    return 1 if without else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
