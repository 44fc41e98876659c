"""The tables of docs/scale.md, between markers in a page that people wrote. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.figures import GIB, MIB
from benchmarks.scale.capacity import BOUGHT, BUSY, DUE_S, TARGET_FILE, Slots, Taken, rounds_of_airflow, takes
from benchmarks.scale.chains import TOLERANCE, Compared, Form, batch_seconds, chain_rate, most_bytes, reproduced
from benchmarks.scale.constants import STEPS, Measured, Step
from benchmarks.scale.runs import RUNS, rows_of_runs
from wavestitch.contracts.stream import Limits, Reading

BEGIN = "<!-- what it takes: written by `make scale`, do not edit -->"
END = "<!-- end of what it takes -->"
CHUNKS = (64 << 10, 4 << 10, 1 << 10)
RATES = (1e9, 10e9)
READERS = 16
LARGER = Limits.model_validate({"max_batch_bytes": "64 GiB", "max_batch_records": 16_000_000})
ROUND_S = 300.0
SLOTS = (4, 8, 16, 32)


@dataclass(frozen=True, slots=True)
class Chain:
    """What one stream gets through: bytes a second, by readers."""

    name: str
    chunk: int
    airflow: bool
    most: float
    rates: dict[int, float]
    seconds: float


@dataclass(frozen=True, slots=True)
class Findings:
    """All that the page shows."""

    found: Measured
    compared: Sequence[Compared]
    chains: Sequence[Chain]
    taken: Sequence[Taken]
    slots: Sequence[Slots]


def work_out(found: Measured) -> Findings:
    """Raises `ValueError` where the measured growth does not come out again."""
    compared = reproduced(found)
    taken = [
        takes(found, rate, Form(chunk, READERS, most_bytes(chunk, Limits()), snapshots=found.snapshots))
        for chunk in CHUNKS
        for rate in RATES
    ]
    streams = int(found.parsing["streams"])
    slots = [rounds_of_airflow(found, streams=streams, every=ROUND_S, slots=n) for n in SLOTS]
    return Findings(found, compared, _chains(found), taken, slots)


def _chains(found: Measured) -> list[Chain]:
    made = []
    for chunk in CHUNKS:
        for name, limits, airflow in (
            ("as declared by default", Limits(), False),
            ("the same, by the DAG, with a Spark's start each", Limits(), True),
            ("64 GiB, 16,000,000 records", LARGER, False),
        ):
            most = most_bytes(chunk, limits)
            forms = {n: Form(chunk, n, most, airflow=airflow) for n in (Reading().workers, READERS, 64)}
            rates = {n: chain_rate(found, form) for n, form in forms.items()}
            made.append(Chain(name, chunk, airflow, most, rates, batch_seconds(found, forms[READERS], most)))
    return made


def replace_between(page: str, generated: str) -> str:
    """The page with `generated` between its markers. Raises `ValueError` where it has none."""
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise ValueError(f"the page must have {BEGIN!r} once, and {END!r} once after it")
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{generated.strip()}\n{END}{rest.split(END)[1]}"


def render(all_: Findings) -> str:
    """Every table, each below its heading."""
    parts = [
        ("What was measured", _constants(all_.found)),
        ("What comes out again", _compared(all_.compared)),
        ("One stream", _one_stream(all_.chains)),
        ("1 GB/s and 10 GB/s", _rates(all_.taken)),
        (f"{all_.found.parsing['streams']} streams on one Airflow", _airflow(all_)),
        ("25 streams and a backfill in one real Airflow", f"{RUNS}\n\n{_table(*rows_of_runs(all_.found.runs))}"),
    ]
    return "\n\n".join(f"### {title}\n\n{text}" for title, text in parts)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _constants(found: Measured) -> str:
    steps = _table(
        ["step", "once, s", "a GiB, s", "more where the log is not in memory, s", "a GiB, CPU s", "more, CPU s"],
        [_step(name, found.steps[name]) for name in STEPS],
    )
    rest = [
        *((f"a chunk of 1 KiB more, {name}, CPU µs", f"{s * 1e6:.2f}") for name, s in found.a_chunk.items()),
        ("index, bytes a chunk", str(found.index_bytes)),
        *((f"a batch of 1 MB in Airflow, {name}, s", f"{s:.2f}") for name, s in found.in_airflow.items() if s),
        ("the same by hand, with Spark's start, CPU s", f"{found.small_batch_cpu:.2f}"),
        (f"plan and publish, for each of {found.snapshots:,} snapshots, µs", f"{found.snapshot * 1e6:.1f}"),
        ("bytes sent / on disk, of the signal that shrinks least", f"{found.smaller:.2f}"),
    ]
    when = "; ".join(f"{name}: {at[:10]}" for name, at in found.when.items())
    return f"{steps}\n\n{_table(['figure', 'measured'], rest)}\n\nMeasured: {when}."


def _step(name: str, step: Step) -> list[str]:
    walls = (step.once.wall, step.per_gib.wall, step.cold.wall)
    return [name, *(f"{s:.3f}" for s in walls), f"{step.per_gib.cpu:.2f}", f"{step.cold.cpu:.2f}"]


def _compared(rows: Sequence[Compared]) -> str:
    def line(c: Compared) -> list[str]:
        wall = [f"{c.measured.wall:.1f}", f"{c.simulated.wall:.1f}", f"{c.off[0]:+.1%}"]
        cpu = [f"{c.measured.cpu:.1f}", f"{c.simulated.cpu:.1f}", f"{c.off[1]:+.1%}"]
        return [c.name, *wall, *cpu, "a constant is of this row" if c.anchor else f"within {TOLERANCE:.0%}"]

    head = ["batch", "measured s", "simulated s", "off", "measured CPU s", "simulated CPU s", "off", ""]
    return _table(head, map(line, rows))


def _one_stream(chains: Sequence[Chain]) -> str:
    widths = list(chains[0].rates)
    return _table(
        ["chunks of", "a batch", "is at most", *(f"{n} readers, MB/s" for n in widths), f"takes, with {READERS}, s"],
        [
            [_size(c.chunk), c.name, _size(c.most), *(f"{c.rates[n] / 1e6:.0f}" for n in widths), f"{c.seconds:.1f}"]
            for c in chains
        ],
    )


_ROWS: tuple[tuple[str, Callable[[Taken], str]], ...] = (
    (f"**streams** (topics, tables), each {BUSY:.0%} of what its chain reaches", lambda t: str(t.streams)),
    ("**readers** (processes), for all of them", lambda t: str(t.readers)),
    ("**executors**: Spark's cores, for all of them", lambda t: str(t.cores)),
    ("processes that carry a batch", lambda t: str(t.streams)),
    ("cores that are busy, of all these together", lambda t: f"{t.busy_cores:.0f}"),
    ("**batches a minute**: a commit of a table each, and a row of a history", lambda t: f"{t.batches_a_minute:.0f}"),
    ("commits a minute of one stream", lambda t: f"{t.batches_a_minute / t.streams:.1f}"),
    ("a batch, on average", lambda t: _size(t.batch)),
    ("oldest record of a batch when its offsets stand, s", lambda t: f"{t.oldest:.0f}"),
    ("**landing**, the most at once", lambda t: _size(t.landed)),
    ("landing and table, written, and read again, GB/s each", lambda t: f"{t.written / 1e9:.1f}"),
    ("**brokers** (bought, not measured)", lambda t: str(t.brokers)),
    ("**disks** of theirs, for a day's retention", lambda t: _size(t.log_a_day)),
    ("table a day", lambda t: _size(t.table_a_day)),
    ("**metadata**: snapshots a stream and day, before maintenance", lambda t: f"{t.snapshots_a_day:,.0f}"),
    ("files a day, as batches write them", lambda t: f"{t.files_a_day:,.0f}"),
    ("files a day of the size that maintenance makes", lambda t: f"{t.table_a_day / TARGET_FILE:,.0f}"),
)


def _rates(taken: Sequence[Taken]) -> str:
    head = ["", *(f"{t.rate / 1e9:g} GB/s, chunks of {_size(t.form.chunk)}" for t in taken)]
    return _table(head, [[name, *map(cell, taken)] for name, cell in _ROWS]) + (
        f"\n\nEach batch has {READERS} readers and the limits that a stream has by default; a stream is due every "
        f"{DUE_S:.0f} s, and goes on at once where its batch left something. A broker is bought with "
        f"{BOUGHT.network * 8 / 1e9:.0f} Gb/s each way and a disk of {BOUGHT.disk / 1e9:.0f} GB/s, used to "
        f"{BOUGHT.used:.0%}; {BOUGHT.copies} copies of each record."
    )


def _airflow(all_: Findings) -> str:
    parsing, found = all_.found.parsing, all_.found
    cores = parsing["streams"] * found.small_batch_cpu / ROUND_S
    files = [
        [f"`{n}`", str(int(f["dags"])), f"{f['wall_s']:.1f}", f"{f['cpu_s']:.1f}"] for n, f in parsing["files"].items()
    ]
    parse = _table(
        ["file of `dags/`", "DAGs", "parsed in s", "CPU s"],
        [*files, ["all", str(parsing["dags"]), "", f"{parsing['cpu_s']:.1f}"]],
    )
    shares = _table(
        ["Airflow parses each file every", "share of a core"],
        [[f"{s} s", f"{parsing['cpu_s'] / s:.0%}"] for s in (int(parsing["interval_s"]), 300, 3600)],
    )
    slots = _table(
        [
            "tasks side by side",
            "the last of all runs has ended after s",
            "of their time taken",
            "before the next round",
        ],
        [[str(s.slots), f"{s.last:.0f}", f"{s.taken:.0%}", "yes" if s.in_time else "**no**"] for s in all_.slots],
    )
    return (
        f"{parse}\n\n{shares}\n\nEvery stream a batch of 1 MB at the same minute, every {ROUND_S:.0f} s, as a run of "
        f"its DAG that starts a Spark; without Airflow's own that is {cores:.1f} cores, whatever the slots:\n\n{slots}"
    )


def _size(size: float) -> str:
    for unit, name in ((1 << 50, "PiB"), (1 << 40, "TiB"), (GIB, "GiB"), (MIB, "MiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size / 1024:g} KiB"
