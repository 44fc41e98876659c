"""All fault classes, all seeds: `python -m tests.faults.campaign [--minutes N] [--workers N] [--only NAME…]`.

Goes on where it stopped (`account.json`, which is committed). Cases run in worker processes, each of which is killed,
with all it started, when a case passes its deadline; one that failed is kept with its seed and its traceback, and
counts as failed.
With `--minutes 0` it runs nothing, and says what is still to be run.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

from spark_apps.start_archive import archived_start
from tests.conftest import CACHE, ROOT
from tests.faults.all_classes import all_classes
from tests.faults.campaign_account import Run, add_case, forget_failed, read_classes
from tests.faults.campaign_report import write_report
from tests.faults.cluster import start_cluster
from tests.faults.fault_class import FaultClass, Need
from wavestitch.local.broker import start_broker, stop_broker
from wavestitch.local.jars import KAFKA, cached_jars
from wavestitch.local.java import find_java

STATE = ROOT / ".wavestitch" / "faults"
CASE_SECONDS = 600.0
"""The longest takes four minutes where two of its kind have one processor between them."""
_START_SECONDS = 120.0
_WORKERS = 4
"""Side by side: a case computes for a second, and waits for several."""
_CLUSTERS = 2
"""Of three nodes each."""


@dataclass(frozen=True)
class Provisions:
    """What the cases run on: an address and a cluster's folder where a need is one, else empty."""

    java_home: Path
    jars: Path
    bootstrap: str = ""
    cluster: str = ""


@contextmanager
def provided(need: Need, workers: int) -> Iterator[Sequence[Provisions]]:
    """Start what all classes of a need run on, for each worker, and stop it. They share a broker; each has a cluster of
    its own, since nodes that one case stops are those that another one needs."""
    java_home = find_java(CACHE)
    # Else the first case of a new cache makes it: 70 s beside other work, and more than a case may have beside much.
    archived_start(cache=CACHE, java_home=java_home, say=_say)
    jars = cached_jars(KAFKA, cache_dir=CACHE, java_home=java_home, say=_say)
    with ExitStack() as stops:
        if need is Need.BROKER:
            folder = STATE / "kafka"
            stops.callback(stop_broker, folder)
            broker = start_broker(folder=folder, java_home=java_home, jars=jars, say=_say)
            yield [Provisions(java_home, jars, broker.bootstrap)] * workers
        elif need is Need.CLUSTER:
            found = []
            for number in range(min(workers, _CLUSTERS)):
                cluster = start_cluster(STATE / f"cluster-{number}", java_home=java_home, jars=jars, say=_say)
                stops.callback(cluster.stop_all)
                found.append(Provisions(java_home, jars, cluster.bootstrap, str(cluster.folder)))
            yield found
        else:
            yield [Provisions(java_home, jars)] * min(workers, os.cpu_count() or 1)  # which wait for nothing


class Worker:
    """A process that runs cases, in a process group of its own; started anew after it was killed."""

    def __init__(self, provisions: Provisions) -> None:
        self._provisions = provisions
        self._child: subprocess.Popen[str] | None = None
        self._said: SimpleQueue[str | None] = SimpleQueue()

    def run(self, name: str, seed: int) -> Run:
        """One case; whatever becomes of it is a run."""
        began = time.monotonic()
        child = self._child or self._start()
        assert child.stdin is not None
        try:
            child.stdin.write(json.dumps({"class": name, "seed": seed}) + "\n")
            child.stdin.flush()
            line = self._said.get(timeout=CASE_SECONDS)
        except (Empty, BrokenPipeError) as error:
            line, why = (
                None,
                f"it was not done after {CASE_SECONDS:.0f} s" if isinstance(error, Empty) else "its process died",
            )
        else:
            why = "its process died"
        if line is None:
            code = self.end()
            failed = {"class": name, "seed": seed, "ok": False, "error": f"{why} (exit code {code})"}
            return {**failed, "seconds": round(time.monotonic() - began, 2)}
        return {**json.loads(line), "seconds": round(time.monotonic() - began, 2)}

    def end(self) -> int | None:
        """Kill it and all it started in its group."""
        child, self._child = self._child, None
        if child is None:
            return None
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        self._said = SimpleQueue()
        return child.wait()

    def _start(self) -> subprocess.Popen[str]:
        g = self._provisions
        log = (STATE / "worker.log").open("ab")
        child = subprocess.Popen(
            [
                *(sys.executable, "-X", "faulthandler", "-m", "tests.faults.campaign_worker"),
                *(str(g.java_home), str(g.jars), g.bootstrap, g.cluster),
            ],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        log.close()
        self._child, said = child, self._said  # so that whoever ends it meanwhile ends that

        def listen() -> None:
            for line in child.stdout or ():
                said.put(line)
            said.put(None)

        Thread(target=listen, daemon=True).start()
        assert said.get(timeout=_START_SECONDS) == "ready\n", f"the worker did not start; see {STATE / 'worker.log'}"
        return child


def run_cases(classes: Sequence[FaultClass], *, until: float, workers: int) -> bool:
    """Run what has not been run; False where the time was over first."""
    known = read_classes()
    done = {name: account.done for name, account in known.items()}
    for need in Need:
        left = [(c.name, s) for c in classes if c.need is need for s in range(c.cases) if s not in done.get(c.name, ())]
        if not left:
            continue
        if time.monotonic() > until:
            return False
        ended = 0
        with provided(need, workers) as provisions:
            for run in _runs(provisions, left, until=until):
                add_case(run)
                _tell(need, ended := ended + 1, len(left), run)
        if ended < len(left):
            return False
    return True


def _runs(provisions: Sequence[Provisions], cases: Sequence[tuple[str, int]], *, until: float) -> Generator[Run]:
    """As they end, side by side, one on each of these; no case is begun later than that."""
    waiting = list(cases)[::-1]
    workers = [Worker(one) for one in provisions]
    free, running = list(workers), dict[Future[Run], Worker]()
    with ExitStack() as stops, ThreadPoolExecutor(len(free)) as threads:
        stops.callback(_end, workers)  # of one that began a case as the others were ended
        try:
            while waiting or running:
                while waiting and free and time.monotonic() < until:
                    worker = free.pop()
                    running[threads.submit(worker.run, *waiting.pop())] = worker
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    free.append(running.pop(future))
                    yield future.result()
        finally:
            _end(workers)


def _end(workers: Iterable[Worker]) -> None:
    for worker in workers:
        worker.end()


def _tell(need: Need, number: int, total: int, run: Run) -> None:
    verdict = "ok" if run["ok"] else f"FAILED: {str(run.get('error', '')).strip().splitlines()[-1][:160]}"
    _say(f"{need} {number}/{total}  {run['class']} seed {run['seed']}  {run['seconds']:.1f} s  {verdict}")


def _say(text: str) -> None:
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


def main(argv: Sequence[str]) -> int:
    ask = argparse.ArgumentParser(prog="python -m tests.faults.campaign", description=__doc__)
    ask.add_argument("--minutes", type=float, default=24 * 60.0, help="stop after so long; the next call goes on")
    ask.add_argument("--workers", type=int, default=_WORKERS, help=f"cases side by side (default {_WORKERS})")
    ask.add_argument("--only", nargs="*", default=[], metavar="NAME", help="classes whose names contain one of these")
    ask.add_argument("--again", action="store_true", help="run again what failed")
    options = ask.parse_args(argv)
    # Whoever tells it to end means all that it has started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    STATE.mkdir(parents=True, exist_ok=True)
    classes = all_classes()
    if options.again:
        forget_failed()
    chosen = [c for c in classes if not options.only or any(o in c.name for o in options.only)]
    until = time.monotonic() + options.minutes * 60
    finished = run_cases(chosen, until=until, workers=options.workers)
    report = write_report(
        classes,
        read_classes(),
        STATE.parent / "faults-report.json",
        checks_until=until if finished and not options.only else None,
    )
    print(report.text)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
