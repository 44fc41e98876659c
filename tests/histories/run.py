"""Random histories by the thousand, from the command line; goes on where it stopped.

    python -m tests.histories.run --histories 10000 [--minutes 30] [--workers 2]
    python -m tests.histories.run --mutants          the seeded bugs of the product, and where each was found out
    python -m tests.histories.run --seed 1392        one history: what is wrong with it, and where it was written to

What was done stands in `.wavestitch/faults/histories.jsonl`, a line for each chunk of seeds, with a digest of the code
that played it: a line of other code is kept and not counted. Ends with 1 where there is an anomaly.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.code_digest import code_digest
from tests.histories.mutants import MUTANTS, hunt
from tests.histories.random_histories import Summary, judge, play_history, run_histories

ROOT = Path(__file__).resolve().parents[2]
STATE = ROOT / ".wavestitch" / "faults" / "histories.jsonl"
CHUNK = 100
_CODE = (
    "wavestitch/batch",
    "wavestitch/contracts",
    "consumers",
    "tests/histories",
    "tests/fakes",
    "tests/domain",
    "tests/builders",
)


def done_chunks(state: Path, code: str) -> dict[int, Summary]:
    """By first seed, the chunks that this code has played; a line that a crash cut off is left out."""
    found = {}
    for line in state.read_text().splitlines() if state.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if row.pop("code") == code and row.pop("count") == row["histories"]:
            first = row.pop("first_seed")
            anomalies = {int(seed): said for seed, said in row.pop("anomalies").items()}
            found[first] = Summary(**{**row, "ops": Counter(row["ops"]), "anomalies": anomalies})
    return found


def keep(state: Path, code: str, first: int, count: int, found: Summary) -> None:
    state.parent.mkdir(parents=True, exist_ok=True)
    row = {"code": code, "first_seed": first, "count": count, **vars(found)}
    torn = state.exists() and not state.read_bytes().endswith(b"\n") and state.stat().st_size > 0
    with state.open("a") as file:
        file.write(("\n" if torn else "") + json.dumps(row) + "\n")


def campaign(histories: int, *, seconds: float, workers: int, state: Path = STATE) -> Summary:
    """All seeds below `histories` that are not done yet, chunk by chunk, within `seconds`."""
    code = code_digest(_CODE)
    done = done_chunks(state, code)
    total = Summary()
    for summary in done.values():
        total.add(summary)
    todo = [(n, min(CHUNK, histories - n)) for n in range(0, histories, CHUNK) if n not in done]
    print(f"code {code}: {total.histories} histories done, {sum(c for _, c in todo)} to play", flush=True)
    began = told = time.monotonic()
    for first, count, found in _played(todo, deadline=began + seconds, workers=workers):
        if found.histories == count:
            keep(state, code, first, count, found)
        total.add(found)
        if found.anomalies or time.monotonic() - told > 10:
            told = time.monotonic()
            print(f"[{told - began:6.0f} s] {total.claim()}", flush=True)
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
                future = pool.submit(run_histories, first_seed=first, count=count, deadline_seconds=left)
                running[future] = first, count
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                first, count = running.pop(future)
                yield first, count, future.result()


def show_seed(seed: int) -> int:
    history, ops = play_history(seed)
    path = STATE.parent / f"history-{seed}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    history.save(path)
    found = judge(history)
    print(f"seed {seed}: {len(history)} events, {sum(ops.values())} acts; written to {path.relative_to(ROOT)}")
    print("\n".join(map(str, found)) or "no anomaly")
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
