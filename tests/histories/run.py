"""Random histories by the thousand, from the command line; goes on where it stopped.

    python -m tests.histories.run --histories 10000 [--minutes 30] [--workers 2]
    python -m tests.histories.run --mutants          the seeded bugs of the product, and where each was found out
    python -m tests.histories.run --seed 1392        one history: what is wrong with it, and where it was written to

What the present code has played stands in `account.json`, which is committed. Ends with 1 where there is an anomaly.
"""

from __future__ import annotations

import argparse
import gc
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.code_digest import WORLD, code_digest
from tests.histories.mutants import MUTANTS, hunt
from tests.histories.random_histories import Summary, judge_whole, play_history, run_histories
from tests.run_account import Ranges, keep_run, numbers_of, read_run, with_range

ROOT = Path(__file__).resolve().parents[2]
ACCOUNT = Path(__file__).parent / "account.json"
CHUNK = 100
CODE = "tests.histories.random_histories"


def done_so_far(code: str, account: Path = ACCOUNT) -> tuple[Ranges, Summary]:
    """The seeds that this code has played, and what they came to."""
    found = read_run(account, code)
    if not found:
        return [], Summary()
    anomalies = {int(seed): said for seed, said in found["sum"].pop("anomalies").items()}
    return found["seeds"], Summary(**{**found["sum"], "ops": Counter(found["sum"]["ops"]), "anomalies": anomalies})


def keep(code: str, seeds: Ranges, found: Summary, account: Path = ACCOUNT) -> None:
    said = {**vars(found), "seconds": round(found.seconds, 1), "ops": dict(sorted(found.ops.items()))}
    keep_run(account, code, {"seeds": seeds, "sum": said})


def campaign(histories: int, *, seconds: float, workers: int) -> Summary:
    """All seeds below `histories` that are not done yet, chunk by chunk, within `seconds`."""
    code = code_digest(CODE, apart=WORLD)
    seeds, total = done_so_far(code)
    done, beside = set(numbers_of(seeds)), Summary()
    chunks = ([s for s in range(n, min(n + CHUNK, histories)) if s not in done] for n in range(0, histories, CHUNK))
    todo = [(chunk[0], chunk[-1] + 1 - chunk[0]) for chunk in chunks if chunk]
    print(f"code {code}: {total.histories} histories done, {sum(c for _, c in todo)} to play", flush=True)
    began = told = time.monotonic()
    for first, count, found in _played(todo, deadline=began + seconds, workers=workers):
        whole = found.histories == count
        (total if whole else beside).add(found)
        if whole:
            seeds = with_range(seeds, first, first + count)
            keep(code, seeds, total)
        if found.anomalies or time.monotonic() - told > 10:
            told = time.monotonic()
            print(f"[{told - began:6.0f} s] {total.claim()}", flush=True)
    total.add(beside)  # chunks that the time cut off: they are played again
    return total


def _played(todo: Sequence[tuple[int, int]], *, deadline: float, workers: int) -> Iterator[tuple[int, int, Summary]]:
    """Chunks as they come; no more are begun than there are workers, so that the deadline ends them all."""
    waiting = list(todo)[::-1]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        running: dict[Future[Summary], tuple[int, int]] = {}
        while waiting or running:
            while waiting and len(running) < workers and time.monotonic() < deadline:
                first, count = waiting.pop()
                left = deadline - time.monotonic()
                future = pool.submit(_chunk, first, count, left)
                running[future] = first, count
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                first, count = running.pop(future)
                yield first, count, future.result()


def _chunk(first: int, count: int, seconds: float) -> Summary:
    """Garbage is looked for once, at its end: a history leaves less than a mebibyte, and looking takes a tenth."""
    gc.disable()
    found = run_histories(first_seed=first, count=count, deadline_seconds=seconds)
    gc.collect()
    return found


def show_seed(seed: int) -> int:
    history, ops = play_history(seed)
    path = ROOT / ".wavestitch" / "faults" / f"history-{seed}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    history.save(path)
    found, _ = judge_whole(history)
    print(f"seed {seed}: {len(history)} events, {sum(ops.values())} acts; written to {path.relative_to(ROOT)}")
    print("\n".join(found) or "no anomaly")
    return 1 if found else 0


def show_mutants() -> int:
    caught = 0
    for name, mutant in MUTANTS.items():
        found = hunt(name)
        caught += found.seed is not None
        print(f"{mutant.kind.value:16} {name}: " + (f"seed {found.seed}" if found.seed is not None else "SURVIVED"))
    print(f"{caught} of {len(MUTANTS)} seeded bugs were found out, each as exactly its kind")
    return 0 if caught == len(MUTANTS) else 1


def _acts(total: Summary) -> str:
    return ", ".join(f"{name} {n}" for name, n in sorted(total.ops.items()) if not name.startswith("ended"))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.histories.run", description="Random histories, analysed.")
    parser.add_argument("--histories", type=int, default=10_000, help="how many, in all (default 10000)")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so long; run again to go on")
    parser.add_argument("--workers", type=int, default=1, help="processes side by side")
    parser.add_argument("--seed", type=int, help="only this one: say what is wrong, and keep its history")
    parser.add_argument("--mutants", action="store_true", help="hunt the seeded bugs instead")
    asked: Any = parser.parse_args(argv)
    # Whoever tells it to end means all that it has started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if asked.seed is not None:
        return show_seed(asked.seed)
    if asked.mutants:
        return show_mutants()
    total = campaign(asked.histories, seconds=asked.minutes * 60, workers=asked.workers)
    for seed, said in sorted(total.anomalies.items())[:20]:
        print(f"seed {seed}:", *said[:10], sep="\n  ")
    print("acts:", _acts(total))
    print(total.claim())
    return 1 if total.anomalies or total.histories < asked.histories else 0


if __name__ == "__main__":
    sys.exit(main())
