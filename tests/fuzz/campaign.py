"""Fuzzes every parser, some side by side, and says of each how much was tried, how far it got, and what was found.

    python -m tests.fuzz.campaign --minutes 5 [--goal 60] [--jobs 2] [--out FOLDER] [--only NAME …]

Goes on where it stopped: the time of a processor that each target had is summed up in `account.json`, those that had
least go first, and those that have reached the goal are left out.

Begins with the corpus that is kept and the targets' seeds. What a target ends with (a find, a hang, too much memory) is
kept in the folder as it came, and the target goes on with another seed until its time is over. `--keep` adds
small inputs to `tests/fuzz/corpus`, within its bounds; finds are put there by hand, after their mend.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.fuzz import one_target
from tests.fuzz.account import Spent, add_to_account, read_account, still_to_run
from tests.fuzz.one_target import run
from tests.fuzz.target import Target

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(__file__).parent / "corpus"
_TIMEOUT_SECONDS = 10
_MOST_MIB = 2048
_MOST_FINDS = 10
_TRIED = "tried.json"
_KEPT_BYTES = 5 << 10
_KEPT_LARGEST = 1200
_PROGRESS = re.compile(r"^#(\d+)\s.*?cov: (\d+) ft: (\d+)", re.MULTILINE)
_END = re.compile(r"^Done (\d+) runs", re.MULTILINE)


@dataclass
class Tried:
    """`seconds`: by the clock; `cpu_seconds`: what the fuzzed processes took of a processor."""

    name: str
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    executions: int = 0
    edges: int = 0
    features: int = 0
    finds: list[str] = field(default_factory=list)


def fuzz(target: Target, *, seconds: float, out: Path) -> Tried:
    """One target, in one process after another."""
    tried = Tried(target.name)
    folder = out / target.name
    corpus, finds = folder / "corpus", folder / "finds"
    for path in (corpus, finds):
        path.mkdir(parents=True, exist_ok=True)
    for seed in [*target.seeds(), *(p.read_bytes() for p in (CORPUS / target.name).glob("*"))]:
        (corpus / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    words = folder / "words"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words))
    begun = time.monotonic()
    while (left := seconds - (time.monotonic() - begun)) > 1 and len(tried.finds) < _MOST_FINDS:
        flags = [
            f"-max_total_time={left:.0f}",
            f"-timeout={_TIMEOUT_SECONDS}",
            f"-rss_limit_mb={_MOST_MIB}",
            f"-max_len={target.longest}",
            *([f"-dict={words}"] if target.words else []),
        ]
        log = folder / f"log-{time.time_ns()}"
        ended, used = run(target.name, [*flags, str(corpus)], log=log, finds=finds)
        tried.cpu_seconds += used
        said = log.read_text(errors="replace")
        reached = [tuple(map(int, found)) for found in _PROGRESS.findall(said)]
        tried.executions += max([*(n for n, _, _ in reached), *map(int, _END.findall(said))], default=0)
        tried.edges = max([tried.edges, *(n for _, n, _ in reached)])
        tried.features = max([tried.features, *(n for _, _, n in reached)])
        tried.finds = sorted(path.name for path in finds.iterdir())
        if ended and not tried.finds:
            raise RuntimeError(f"{target.name} could not be run; {log} says why")
    tried.seconds = time.monotonic() - begun
    return tried


def keep(target: Target, *, out: Path) -> None:
    """The smallest of the inputs that reached something new when they came, as far as there is room for them."""
    kept, seeds = CORPUS / target.name, set(target.seeds())
    kept.mkdir(parents=True, exist_ok=True)
    size = sum(path.stat().st_size for path in kept.iterdir())
    contents = {path.read_bytes() for path in (out / target.name / "corpus").iterdir()} - seeds
    for content in sorted(contents, key=lambda c: (len(c), c)):
        name = kept / hashlib.sha256(content).hexdigest()[:16]
        if len(content) > _KEPT_LARGEST or size + len(content) > _KEPT_BYTES:
            break
        if not name.exists():
            name.write_bytes(content)
            size += len(content)


def _escaped(word: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word.encode())


def _row(tried: Tried) -> str:
    found = ", ".join(tried.finds) or "nothing"
    numbers = (
        f"{tried.seconds:8.0f} s {tried.cpu_seconds:8.0f} s {tried.executions:12,} {tried.edges:7,} {tried.features:9,}"
    )
    return f"{tried.name:18} {numbers}  {found}"


def _side_by_side(wanted: Sequence[Target], *, jobs: int, seconds: Mapping[str, float], out: Path) -> Iterator[Tried]:
    """Each target in a child of its own, from before any thread is there; what it came to is in a file."""
    waiting, running = list(wanted), dict[int, Target]()
    while waiting or running:
        while waiting and len(running) < jobs:
            target = waiting.pop(0)
            child = os.fork()
            if not child:
                try:
                    tried = fuzz(target, seconds=seconds[target.name], out=out)
                    (out / target.name / _TRIED).write_text(json.dumps(asdict(tried)))
                    os._exit(0)
                finally:
                    os._exit(1)
            running[child] = target
        ended, status = os.wait()
        target = running.pop(ended)
        if status:
            raise SystemExit(f"{target.name} could not be run; {out / target.name}/log-* say why")
        yield Tried(**json.loads((out / target.name / _TRIED).read_text()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="for each target, by the clock")
    parser.add_argument(
        "--goal", type=float, default=60.0, help="minutes of a processor for each target, over all runs"
    )
    parser.add_argument("--jobs", type=int, default=2, help="side by side")
    parser.add_argument("--out", type=Path, default=ROOT / ".wavestitch" / "fuzz")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    one_target.prepare()
    from tests.fuzz.all_targets import TARGETS  # noqa: PLC0415 - its branches are marked only now

    lacking = still_to_run(given.only or TARGETS, goal_seconds=given.goal * 60, spent=read_account())
    seconds = {name: min(left, given.minutes * 60) for name, left in lacking.items()}
    wanted = [TARGETS[name] for name in seconds]
    print(
        f"{'target':18} {'time':>10} {'of a CPU':>10} {'executions':>12} {'edges':>7} {'features':>9}  found",
        flush=True,
    )
    done: list[Tried] = []
    for tried in _side_by_side(wanted, jobs=given.jobs, seconds=seconds, out=given.out):
        done.append(tried)
        so_far = add_to_account(tried.name, Spent(tried.cpu_seconds, tried.executions, tried.edges, tried.features))
        print(f"{_row(tried)}; {so_far.cpu_seconds / 60:.0f} min in all", flush=True)
    if given.keep:
        for target in wanted:
            keep(target, out=given.out)
    finds = sum(len(tried.finds) for tried in done)
    print(f"{sum(t.executions for t in done):,} executions, {finds} finds; what was found is in {given.out}/*/finds")
    left = still_to_run(TARGETS, goal_seconds=given.goal * 60, spent=read_account())
    minutes = sum(left.values()) / 60
    print(
        f"{len(TARGETS) - len(left)} of {len(TARGETS)} targets had {given.goal:.0f} min of a processor; "
        f"{minutes:.0f} min are lacking"
    )
    sys.exit(1 if finds else 0)


if __name__ == "__main__":
    main()
