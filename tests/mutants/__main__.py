"""Mutants of the product, and the tests that are to kill them: `python -m tests.mutants [--minutes N] [NAME …]`.

NAME: modules whose files have one of these words. Goes on where it stopped: what was tried stands in
`.wavestitch/mutants`, and in `account.json` once a module is through. Of a module with many mutants a sample is tried,
the same one each time.
Ends with 1 where a survivor has no reason.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence

from tests.mutants.account import Tried, add_to_account, digest_of, read_account, score
from tests.mutants.mutant import Mutant, mutants_of
from tests.mutants.reach import ROOT, find_reach, read_reach
from tests.mutants.targets import chosen_tests, modules
from tests.mutants.trial import Trial

MOST = 200
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
        self.log = STATE / f"{name}.log"

    def read(self) -> dict[str, bool]:
        lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        return dict(json.loads(line) for line in lines if line.endswith("]"))

    def add(self, mutant: Mutant, killed: bool) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([mutant.name, killed]) + "\n")

    def close(self) -> None:
        self._path.unlink(missing_ok=True)


def try_module(module: str, *, most: int, until: float, again: bool = False) -> Tried | None:
    """All that is left of it; None where the time was over first. `again`: those that survived, too."""
    path = ROOT / module
    source = path.read_text(encoding="utf-8")
    mutants = drawn(module, mutants_of(source))
    kept = _Kept(module, digest_of(source))
    known = read_account().get(module)
    done = kept.read()
    if known is not None and known.source == digest_of(source):
        most = max(most, known.tried)
        done |= {m.name: m.name not in known.survivors for m in mutants[: known.tried]}
    if again:
        done = {name: killed for name, killed in done.items() if killed}
    sample = mutants[:most]
    left = [m for m in sample if m.name not in done]
    tests = chosen_tests(module, read_reach())
    if left and not tests.tests:
        raise RuntimeError(f"{module}: no unit test and none of the domain runs anything of it in its own process")
    trial = Trial(module.removesuffix(".py").replace("/", "."), path, tests, kept.log)
    for mutant, killed in _in_time(trial.killed(left), until) if left else ():
        done[mutant.name] = killed
        kept.add(mutant, killed)
        if not killed:
            print(f"    survived: {mutant.name}", flush=True)
    if any(m.name not in done for m in sample):
        return None
    survivors = [m.name for m in sample if not done[m.name]]
    kept.close()
    killed_ones = len(sample) - len(survivors)
    return add_to_account(
        module, Tried(digest_of(source), len(mutants), len(sample), killed_ones, dict.fromkeys(survivors, ""))
    )


def _in_time(results: Iterator[tuple[Mutant, bool]], until: float) -> Iterator[tuple[Mutant, bool]]:
    for found in results:
        yield found
        if time.monotonic() > until:
            break


def main(argv: Sequence[str]) -> int:
    ask = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    ask.add_argument("names", nargs="*", metavar="NAME")
    ask.add_argument("--minutes", type=float, default=24 * 60.0, help="stop after so long; the next call goes on")
    ask.add_argument("--most", type=int, default=MOST, help=f"of each module (default {MOST})")
    ask.add_argument("--again", action="store_true", help="try the survivors of modules that were tried")
    options = ask.parse_args(argv)
    until = time.monotonic() + options.minutes * 60
    if options.minutes and not find_reach(until=until):
        return _sum_up()
    wanted = [m for m in modules() if any(n in m for n in options.names or [""])]
    for module in wanted if options.again else left_to_try(options.names, most=options.most):
        if time.monotonic() > until:
            break
        began = time.monotonic()
        try:
            tried = try_module(module, most=options.most, until=until, again=options.again)
        except RuntimeError as error:
            print(error, flush=True)
            continue
        if tried is not None:
            print(f"{_row(module, tried)}, {time.monotonic() - began:.0f} s", flush=True)
    return _sum_up()


def _row(module: str, tried: Tried) -> str:
    unexplained = sum(not why for why in tried.survivors.values())
    return (
        f"{module}: {tried.made} made, {tried.tried} tried, {tried.killed} killed ({tried.killed / tried.tried:.1%}), "
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
