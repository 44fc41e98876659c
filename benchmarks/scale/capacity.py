"""What a rate takes: streams, readers, cores, commits, landing, disks. Pure.

Streams and servers are worked out, then simulated, with more servers each time, until what waits does not grow.

Extrapolated: a reader or a core elsewhere is taken to do what each of two did on the machine that was measured, where
a broker had its share of the same two processors. What a broker, its disk and its network do was not measured; it is
`BOUGHT`, and said to be that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from benchmarks.figures import MIB
from benchmarks.scale.chains import BATCHES, CORES, READERS, Form, chain_rate, cpu_seconds, steps_of
from benchmarks.scale.constants import BETWEEN, INDEX, LANES, READ, STITCH, Measured
from benchmarks.scale.queues import Run, Source, Work, simulate

DAY_S = 86400
BUSY = 0.8
"""The share of its time that whatever serves is planned for: the rest works off what waited."""
DUE_S = 60.0
"""Cron knows nothing finer."""
SIMULATED_S = 900.0
_MORE = 1.1
TARGET_FILE = 128 * MIB
"""`[maintain] target_file`, by default."""


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker as it is bought: bytes a second of its network, each way, and of its disk; copies of each record;
    and the share of both that is used in normal times, so that the others carry what one had that is gone."""

    network: float = 25e9 / 8
    disk: float = 1e9
    copies: int = 3
    used: float = 0.5


BOUGHT = Broker()


@dataclass(frozen=True, slots=True)
class Taken:
    """What a rate takes. Bytes, bytes a second, seconds. `oldest`: age of a batch's oldest record when its offsets
    stand; `landed`: the most that lay in the landing at once."""

    rate: float
    form: Form
    streams: int
    readers: int
    cores: int
    busy_cores: float
    brokers: int
    batches_a_minute: float
    batch: float
    oldest: float
    landed: float
    written: float
    log_a_day: float
    table_a_day: float
    files_a_day: float
    snapshots_a_day: float


def takes(found: Measured, rate: float, form: Form) -> Taken:
    """The fewest streams whose chains keep up, and the fewest servers with which they do so together."""
    streams = math.ceil(rate / (BUSY * chain_rate(found, form)))
    steps = steps_of(found, form)
    a_byte = dict.fromkeys((READERS, CORES), 0.0)
    for work in steps(form.most):
        if work.station in a_byte:
            a_byte[work.station] += work.pieces * work.seconds / form.most
    each, at_least = rate / streams, {READERS: form.readers, CORES: form.cores}
    sources = [Source(each, form.most, first=DUE_S * n / streams, every=DUE_S) for n in range(streams)]
    for more in count():
        wide = _MORE**more / BUSY
        servers = {name: max(at_least[name], math.ceil(rate * seconds * wide)) for name, seconds in a_byte.items()}
        run = simulate(sources, {**servers, BATCHES: streams}, steps, until=SIMULATED_S)
        if keeps_up(run, sources):
            break
    late = [batch for batch in run.batches if batch.began > SIMULATED_S / 2]
    seconds, moved = SIMULATED_S / 2, sum(batch.size for batch in late)
    batches = len(late) / seconds
    sent = 1 / found.smaller
    return Taken(
        rate=rate,
        form=form,
        streams=streams,
        readers=servers[READERS],
        cores=servers[CORES],
        busy_cores=sum(cpu_seconds(found, form, batch.size) for batch in late) / moved * rate,
        brokers=brokers(rate),
        batches_a_minute=60 * batches,
        batch=moved / len(late),
        oldest=max((b.size + b.left) / each + b.ended - b.began for b in late),
        landed=run.landed,
        written=rate * (1 + sent),
        log_a_day=rate * BOUGHT.copies * DAY_S,
        table_a_day=rate * sent * DAY_S,
        files_a_day=sum(form.tasks(batch.size) for batch in late) / seconds * DAY_S,
        snapshots_a_day=batches * DAY_S / streams,
    )


def keeps_up(run: Run, sources: Sequence[Source]) -> bool:
    """Whether every stream is at work, and what its batches leave stays what comes between two times that it is due."""
    half = max((b.ended for b in run.batches), default=0.0) / 2
    late = [b for b in run.batches if b.began > half]
    return len({b.source for b in late}) == len(sources) and all(
        b.left <= sources[b.source].rate * sources[b.source].every for b in late
    )


def brokers(rate: float) -> int:
    """By disk, by what comes in (all copies), and by what goes out (copies for the others, and one reading)."""
    about = BOUGHT
    # The leader sends to all other copies and to one reader: as much as comes in.
    moved = rate * about.copies
    by_disk, by_network = moved / about.disk, moved / about.network
    return max(about.copies, math.ceil(max(by_disk, by_network) / about.used))


@dataclass(frozen=True, slots=True)
class Slots:
    """Many streams on one Airflow: how their batches come to a Spark, tasks side by side and slots of the pool that
    those wait for which use one; seconds until the last run of a round has ended, the share of both that is taken, and
    whether that is before the next round."""

    way: str
    slots: int
    sparks: int
    last: float
    taken: float
    sparks_taken: float
    in_time: bool


def rounds_of_airflow(
    found: Measured, way: str, *, streams: int, every: float, slots: int, sparks: int, rounds: int = 6
) -> Slots:
    """Every stream has a batch of 1 MB at the same minute, as a cron that all of them share makes them. The first round
    counts, and all of them where streams are in time."""
    small = 1e6
    took = found.in_airflow[way]
    tasks = [
        Work("slots", LANES if name == READ else 1, seconds, pool="sparks" if name == STITCH else None)
        for name, seconds in took.items()
        if name not in (BETWEEN, INDEX)
    ]
    between = Work("scheduler", 1, took[BETWEEN] / (len(tasks) - 1))

    def steps(_: float) -> list[Work]:
        return [work for task in tasks for work in (task, between)][:-1]

    sources = [Source(small / every, math.inf, waiting=small, every=every) for _ in range(streams)]
    servers = {"slots": slots, "sparks": sparks, "scheduler": streams}
    first = simulate([replace(source, rate=0.0) for source in sources], servers, steps, until=math.inf)
    last = max(batch.ended for batch in first.batches)
    until = rounds * every
    run = simulate(sources, servers, steps, until=until)
    in_time = last < every and len(run.batches) >= streams * (rounds - 1)
    taken, sparks_taken = (min(1.0, run.busy[name] / servers[name] / until) for name in ("slots", "sparks"))
    return Slots(way, slots, sparks, last, taken, sparks_taken, in_time)
