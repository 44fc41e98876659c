"""Side by side: everybody reads the same topic in turns, writes durably and is checked (zstd-1). Ours, what is written
by hand, plain pyarrow, and Spark where it says so write typed samples, the others bytes.

A contender that fails runs no more and takes no other one away; so does a topic. The first run of each is not counted.
"""

from __future__ import annotations

import os
import shutil
import traceback
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.children import Child, Json, race, start
from benchmarks.figures import Cost, Run, median_costs, summarise
from benchmarks.headline import BY_HAND, LAND, PYARROW, RAW, SINK, SPARK, TYPED_SPARK, WHOLE
from benchmarks.options import Options
from benchmarks.parallel_consumer import start_parallel_consumer
from benchmarks.reading import landing_jobs, raw_jobs
from benchmarks.test_bed import Say, TestBed, Topic, check_samples
from benchmarks.whole_runs import steps_of, whole_run
from wavestitch.local.folders import CACHE
from wavestitch.local.jars import CONNECT_ICEBERG, SPARK_KAFKA, cached_jars

LAYOUTS: dict[str, Json] = {
    "sticky": {"layout": "sticky"},
    "round-robin": {"layout": "round-robin"},
    # What devices send one by one. A quarter of the bytes: still sixteen times as many records as of 64 KiB.
    "small": {"layout": "sticky", "waveform_kib": 32, "chunk_bytes": 1 << 10, "part": 4},
    # A lead's second is 720 bytes, a classic miniSEED record 512: 524,288 chunks in a topic of 1,024 MiB.
    "device": {"layout": "sticky", "waveform_kib": 16, "chunk_bytes": 512, "part": 4},
    "pages": {"layout": "sticky", "waveform_kib": 128, "chunk_bytes": 4 << 10, "part": 2},
    # Many small waveforms, where the cost of each is what counts: 131,072 of them.
    "pairs": {"layout": "sticky", "waveform_kib": 1, "chunk_bytes": 512, "part": 8},
}
ONCE = "ours: end to end, with Spark's start"
_ONLY_IN_FULL = ("raw, 1 process", "Parallel Consumer", "ours: read + land, 1 process", "copy of the landing", ONCE)
_ONLY_IN = {
    PYARROW: ("sticky", "round-robin"),
    TYPED_SPARK: ("sticky", "device"),
    SINK: ("sticky", "device"),
    **dict.fromkeys(_ONLY_IN_FULL, ("sticky",)),
}
"""Where what a contender says of one topic, it says of the others, too."""
_ROUNDS_OF_OTHERS = 2
"""Of topics but the first: a contender is warm by then, and there are many."""


def measure(bed: TestBed, options: Options, say: Say, *, only: Collection[str] = ()) -> Iterator[Json]:
    """What there is so far, after each topic. `only`: names of contenders; none: all."""
    with ExitStack() as stack:
        contest = _Contest(bed, options, say, stack, frozenset(only))
        found: Json = {"codec": "zstd-1", "chunk_kib": 64, "waveform_kib": 1024, "partitions": 4}
        for layout in options.layouts:
            try:
                found[layout] = contest.layout(layout)
            except Exception as error:  # of one topic: the others go on
                traceback.print_exc()
                found[layout] = {"failed": {"the topic": f"{type(error).__name__}: {error}"[:800]}}
            yield dict(found)


@dataclass
class _Contest:
    bed: TestBed
    options: Options
    say: Say
    stack: ExitStack
    only: frozenset[str] = frozenset()
    children: dict[str, Child] = field(default_factory=dict)

    def layout(self, layout: str) -> Json:
        shape = dict(LAYOUTS[layout])
        topic = self.bed.topic(mib=max(1, self.options.mib // shape.pop("part", 1)), **shape, say=self.say)
        entries = self._entries(topic, layout)
        runs: dict[str, list[Run]] = {name: [] for name in entries}
        failed: dict[str, str] = {}
        rounds = self.options.rounds if layout == self.options.layouts[0] else _ROUNDS_OF_OTHERS
        for round_ in range(min(rounds, self.options.rounds) + 1):
            for name, act in entries.items():
                if name in failed or (name == ONCE and round_ == 0):
                    continue
                try:
                    run = act()
                except Exception as error:  # of one contender: the others go on
                    failed[name] = f"{type(error).__name__}: {error}"[:800]
                    self.say(f"{layout}, {name}: failed: {failed[name]}")
                    continue
                speed = run.size / 1e6 / run.cost.wall
                words = f"{speed:7.0f} MB/s {run.cost.wall:6.2f} s {run.cost.cpu:6.2f} CPU s"
                self.say(f"{layout:11} {'warm-up' if round_ == 0 else f'round {round_}'}  {name:42}{words}")
                if round_ > 0:
                    runs[name].append(run)
        rows: Json = {name: {**_row(mine), "records": topic.records} for name, mine in runs.items() if mine}
        for name, mine in runs.items():
            if name == WHOLE and name in rows:
                rows["ours: stitching"] = _stitching(mine)
        shutil.rmtree(self._landed(topic), ignore_errors=True)
        return {**rows, **({"failed": failed} if failed else {})}

    def _entries(self, topic: Topic, layout: str) -> dict[str, Callable[[], Run]]:
        """In this order, so that the landing of `read + land` is there for those that start from it."""
        entries: dict[str, Callable[[], Run]] = {
            "raw, 1 process": lambda: self._raw(topic, 1),
            RAW: lambda: self._raw(topic, 2),
            "Parallel Consumer": lambda: self._parallel(topic),
            "ours: read + land, 1 process": lambda: self._land(topic, 1),
            LAND: lambda: self._land(topic, 2),
            "copy of the landing": lambda: self._from_landing("copying", topic),
            PYARROW: lambda: self._from_landing("plain_pyarrow", topic),
            SPARK: lambda: self._spark(topic, "bytes"),
            # A waveform that lies in one partition needs nobody else; across partitions one process has to have all.
            BY_HAND: lambda: self._by_hand(topic, 1 if layout == "round-robin" else 2),
            TYPED_SPARK: lambda: self._spark(topic, "typed"),
            SINK: lambda: self._sink(topic),
            WHOLE: lambda: self._whole(topic, "warm"),
            ONCE: lambda: self._whole(topic, "submit"),
        }
        for name, layouts in _ONLY_IN.items():
            if layout not in layouts or (name in _ONLY_IN_FULL and not self.options.extras):
                del entries[name]
        return {name: act for name, act in entries.items() if not self.only or name in self.only}

    def _child(self, name: str) -> Child:
        """Started when it is first needed; a dead one is started anew."""
        found = self.children.get(name)
        if found is None or found.process.poll() is not None:
            found = self.children[name] = self.stack.enter_context(self._start(name))
        return found

    def _start(self, name: str) -> Child:
        folder = self.bed.folder
        if name == "parallel":
            return start_parallel_consumer(folder, self.bed.java_home, say=self.say)
        env = {"JAVA_HOME": str(self.bed.java_home)}
        jar_set = {"spark_kafka": SPARK_KAFKA, "connect_sink": CONNECT_ICEBERG}.get(name)
        if jar_set is not None:
            jars = cached_jars(jar_set, cache_dir=CACHE, java_home=self.bed.java_home, say=self.say)
            env["BENCH_JARS"] = str(jars)
        return start(f"benchmarks.contenders.{name.partition('#')[0]}", folder=folder, env=env)

    def _raw(self, topic: Topic, processes: int) -> Run:
        children = [self._child(f"raw#{n}") for n in range(processes)]
        return race(children, raw_jobs(self.bed, topic, processes), size=topic.bytes, check=_all_of(topic))

    def _land(self, topic: Topic, processes: int) -> Run:
        folder = self._landed(topic) if processes == 2 else self._scratch("landed")
        shutil.rmtree(folder, ignore_errors=True)
        children = [self._child(f"landing#{n}") for n in range(processes)]
        jobs = landing_jobs(self.bed, topic, processes, folder)
        run = race(children, jobs, size=topic.bytes, check=_all_of(topic))
        if processes == 1:
            shutil.rmtree(folder)
        return run

    def _parallel(self, topic: Topic) -> Run:
        output = self._scratch("parallel")
        job = {"bootstrap": self.bed.bootstrap, "topic": topic.name, "output": str(output)}
        job |= {"records": str(sum(topic.ends)), "partitions": str(len(topic.ends))}
        try:
            run = race([self._child("parallel")], [job], size=topic.bytes)
            if run.facts["bytes"] < topic.bytes:
                raise RuntimeError(f"{run.facts['bytes']} bytes came, {topic.bytes} are in {topic.name}")
            # Until all is durable; leaving its group takes it two seconds more.
            return replace(run, cost=Cost(run.facts["seconds"], run.cost.cpu))
        finally:
            shutil.rmtree(output, ignore_errors=True)

    def _from_landing(self, name: str, topic: Topic) -> Run:
        output = self._scratch(name)
        files = [str(f) for f in sorted(self._landed(topic).glob("slice-*.arrow"))]
        _fetch(files)
        try:
            run = race([self._child(name)], [{"files": files, "output": str(output)}], size=topic.bytes)
            if name == "plain_pyarrow":
                check_samples([Path(f) for f in run.facts["files"]], topic.digests)
            return run
        finally:
            shutil.rmtree(output, ignore_errors=True)

    def _by_hand(self, topic: Topic, processes: int) -> Run:
        output = self._scratch("expert")
        output.mkdir()
        children = [self._child(f"expert#{n}") for n in range(processes)]
        jobs = raw_jobs(self.bed, topic, processes)
        for n, job in enumerate(jobs):
            job["output"] = str(output / f"{n}.parquet")
        try:
            run = race(children, jobs, size=topic.bytes)
            check_samples(sorted(output.glob("*.parquet")), topic.digests)
            return run
        finally:
            shutil.rmtree(output, ignore_errors=True)

    def _spark(self, topic: Topic, samples: str) -> Run:
        output = self._scratch("spark")
        job: Json = {"bootstrap": self.bed.bootstrap, "topic": topic.name, "output": str(output)}
        job |= {"starts": topic.starts, "ends": topic.ends, "samples": samples}
        try:
            run = race([self._child("spark_kafka")], [job], size=topic.bytes)
            check_samples([Path(f) for f in run.facts["files"]], topic.digests)
            return run
        finally:
            shutil.rmtree(output, ignore_errors=True)

    def _sink(self, topic: Topic) -> Run:
        output = self._scratch("sink")
        job: Json = {"bootstrap": self.bed.bootstrap, "topic": topic.name, "output": str(output)}
        job |= {"records": sum(topic.ends)}
        try:
            run = race([self._child("connect_sink")], [job], size=topic.bytes)
            _check_chunks(run.facts["files"], topic)
            # From its first file on that counts: until then its tasks join a group, and what commits begins to listen.
            return replace(run, cost=Cost(run.facts["seconds"], run.cost.cpu))
        finally:
            shutil.rmtree(output, ignore_errors=True)

    def _whole(self, topic: Topic, spark: str) -> Run:
        return whole_run(self.bed, self._child("whole"), topic, spark=spark)

    def _landed(self, topic: Topic) -> Path:
        return self.bed.folder / f"landed-{topic.name}"

    def _scratch(self, name: str) -> Path:
        return self.bed.folder / f"{name}-{os.getpid()}-{uuid.uuid4().hex[:6]}"


def _fetch(files: Sequence[str]) -> None:
    """Have the landing in the page cache, which ours has left: these contenders map it, as one does."""
    for name in files:
        with Path(name).open("rb", buffering=0) as file:
            while file.read(1 << 20):
                pass


def _check_chunks(files: Sequence[str], topic: Topic) -> None:
    """Every measured record once, and all of its bytes."""
    import pyarrow.compute as pc  # noqa: PLC0415 - only after the clock has stopped
    import pyarrow.parquet as pq  # noqa: PLC0415

    found = pq.read_table(list(files), columns=["partition", "offset", "payload"])
    sizes = pc.binary_length(found["payload"])
    starts = pc.take(pa.array(topic.starts), found["partition"])
    mine = pc.greater_equal(found["offset"], starts)
    places = found.select(["partition", "offset"]).filter(mine).group_by(["partition", "offset"]).aggregate([])
    seen = pc.sum(sizes.filter(mine)).as_py(), pc.sum(mine).as_py(), len(places)
    if seen != (topic.bytes, topic.records, topic.records):
        raise RuntimeError(f"{seen} bytes, rows and places were stored, {topic.bytes} and {topic.records} are there")


def _all_of(topic: Topic) -> Callable[[list[Json]], None]:
    def check(answers: list[Json]) -> None:
        seen = sum(a["bytes"] for a in answers), sum(a["records"] for a in answers)
        if seen != (topic.bytes, topic.records):
            raise RuntimeError(f"{seen} bytes and records came, {(topic.bytes, topic.records)} are in {topic.name}")

    return check


def _row(runs: list[Run]) -> Json:
    row = summarise(runs)
    if "steps" in runs[0].facts:
        row["steps"] = median_costs([steps_of(r) for r in runs])
    return row


def _stitching(runs: list[Run]) -> dict[str, Any]:
    """Spark's share of whole batches: from the job's submission to its report, in a warm session."""
    return summarise([Run(steps_of(r)["Spark"], r.size) for r in runs])
