"""The tables of docs/scale.md, between markers in a page that people wrote. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.figures import GIB, MIB
from benchmarks.scale.capacity import BOUGHT, BUSY, DUE_S, TARGET_FILE, Slots, Taken, rounds_of_airflow, takes
from benchmarks.scale.chains import TOLERANCE, Compared, Form, batch_seconds, chain_rate, most_bytes, reproduced
from benchmarks.scale.constants import STEPS, SUBMIT, THERE, Measured, Step
from benchmarks.scale.runs import RUNS, rows_of_runs
from wavestitch.contracts.stream import Limits, Reading
from wavestitch.settings import Settings

BEGIN = "<!-- what it takes: written by `make scale`, do not edit -->"
END = "<!-- end of what it takes -->"
CHUNKS = (64 << 10, 4 << 10, 1 << 10)
RATES = (1e9, 10e9)
READERS = CORES = 16
WIDTHS = ((Reading().workers, 2), (READERS, CORES), (64, 64))
"""Readers, and cores of Spark's, of one stream: by default (`local[2]`), and more of both."""
LARGER = Limits.model_validate({"max_batch_bytes": "64 GiB", "max_batch_records": 16_000_000})
ROUND_S = 300.0
SLOTS = {SUBMIT: ((8, 1), (8, 4), (32, 1), (32, 4), (32, 8), (32, 16)), THERE: ((4, 4), (8, 1), (8, 4), (32, 4))}
"""Tasks side by side, and slots of the pool of whatever uses a Spark: one by default, four in the composition."""


@dataclass(frozen=True, slots=True)
class Chain:
    """What one stream gets through: bytes a second, by readers and Spark's cores."""

    name: str
    chunk: int
    most: float
    rates: dict[tuple[int, int], float]
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
        takes(found, rate, Form(chunk, READERS, CORES, most_bytes(chunk, Limits()), snapshots=found.snapshots))
        for chunk in CHUNKS
        for rate in RATES
    ]
    streams = int(found.parsing["streams"])
    slots = [
        rounds_of_airflow(found, way, streams=streams, every=ROUND_S, slots=slots, sparks=sparks)
        for way, many in SLOTS.items()
        for slots, sparks in many
    ]
    return Findings(found, compared, _chains(found), taken, slots)


def _chains(found: Measured) -> list[Chain]:
    made = []
    for chunk in CHUNKS:
        for name, limits, airflow in (
            ("as declared by default", Limits(), None),
            ("the same, by the DAG, with a Spark's start each", Limits(), SUBMIT),
            (f"the same, by the DAG, with {THERE}", Limits(), THERE),
            ("64 GiB, 16,000,000 records", LARGER, None),
        ):
            most = most_bytes(chunk, limits)
            forms = {width: Form(chunk, *width, most, airflow=airflow) for width in WIDTHS}
            rates = {width: chain_rate(found, form) for width, form in forms.items()}
            made.append(Chain(name, chunk, most, rates, batch_seconds(found, forms[READERS, CORES], most)))
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
        ["step", "once, s", "a GiB, s", "once, CPU s", "a GiB, CPU s"],
        [_step(name, found.steps[name]) for name in STEPS],
    )
    rest = [
        *((f"a chunk of 1 KiB more, {name}, CPU µs", f"{s * 1e6:.2f}") for name, s in found.a_chunk.items()),
        ("index, bytes a chunk", str(found.index_bytes)),
        *(
            (f"a batch of 1 MB in Airflow, {way}, {name}, s", f"{s:.2f}")
            for way, steps_of_it in found.in_airflow.items()
            for name, s in steps_of_it.items()
            if s
        ),
        ("the same by hand, with Spark's start, CPU s", f"{found.small_batch_cpu:.2f}"),
        (f"plan and publish, for each of {found.snapshots:,} snapshots, µs", f"{found.snapshot * 1e6:.1f}"),
        ("bytes sent / on disk, of the signal that shrinks least", f"{found.smaller:.2f}"),
    ]
    when = "; ".join(f"{name}: {at[:10]}" for name, at in found.when.items())
    return f"{steps}\n\n{_table(['figure', 'measured'], rest)}\n\nMeasured: {when}."


def _step(name: str, step: Step) -> list[str]:
    walls, cpu = (step.once.wall, step.per_gib.wall), (step.once.cpu, step.per_gib.cpu)
    return [name, *(f"{s:.3f}" for s in walls), *(f"{s:.2f}" for s in cpu)]


def _compared(rows: Sequence[Compared]) -> str:
    def line(c: Compared) -> list[str]:
        wall = [f"{c.measured.wall:.1f}", f"{c.simulated.wall:.1f}", f"{c.off[0]:+.1%}"]
        cpu = [f"{c.measured.cpu:.1f}", f"{c.simulated.cpu:.1f}", f"{c.off[1]:+.1%}"]
        not_held = "constants are of this row" if c.fitted else "a topic of its own: not held to it"
        return [c.name, *wall, *cpu, f"held out: within {TOLERANCE:.0%}" if c.held else not_held]

    head = ["batch", "measured s", "simulated s", "off", "measured CPU s", "simulated CPU s", "off", ""]
    return _table(head, map(line, rows))


def _one_stream(chains: Sequence[Chain]) -> str:
    widths = [f"{readers} readers and {cores} cores of Spark's, MB/s" for readers, cores in chains[0].rates]
    return _table(
        ["chunks of", "a batch", "is at most", *widths, f"takes, with {READERS} and {CORES}, s"],
        [
            [
                _size(c.chunk),
                c.name,
                _size(c.most),
                *(f"{rate / 1e6:.0f}" for rate in c.rates.values()),
                f"{c.seconds:.1f}",
            ]
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
        f"\n\nEach batch has {READERS} readers and the limits that a stream has by default; alone it would have "
        f"{CORES} cores of Spark's. Readers and cores are of all streams: who finds none free waits. A stream is due "
        f"every {DUE_S:.0f} s, and goes on at once where its batch left something. A broker is bought with "
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
    read, one_file = Settings.model_fields["most_streams"].default, sum(f["wall_s"] for f in parsing["files"].values())
    slots = _table([name for name, _ in _SLOTS], [[cell(s) for _, cell in _SLOTS] for s in all_.slots])
    return (
        f"By default {read} streams are read, and the others have no DAG: raise `most_streams` first. Below, each file "
        "of a checkout's `dags/` is parsed by itself. Composition, Kubernetes and an Airflow of your own have one file "
        f"that makes all of these DAGs, which took {one_file:.0f} s in all, without what Airflow stores. By default it "
        "has 30 s to be imported (`[core] dagbag_import_timeout`) and 50 s with what is stored (`[dag_processor] "
        "dag_file_processor_timeout`), and beyond them none of its DAGs is there: raise both, too "
        f"([settings](settings.md#airflow)).\n\n{parse}\n\n{shares}\n\n"
        f"Every stream a batch of 1 MB at the same minute, every {ROUND_S:.0f} s, as a run of its DAG; what stitches "
        "waits for a slot of the pool, too. Where each starts a Spark, all that is, without Airflow's own, "
        f"{cores:.1f} cores, whatever the slots:\n\n{slots}"
    )


_SLOTS: tuple[tuple[str, Callable[[Slots], str]], ...] = (
    ("the run stitches by", lambda s: s.way),
    ("tasks side by side", lambda s: str(s.slots)),
    ("slots of the pool `spark`", lambda s: str(s.sparks)),
    ("the last of all runs has ended after s", lambda s: f"{s.last:.0f}"),
    ("of the tasks' time taken", lambda s: f"{s.taken:.0%}"),
    ("of the pool's", lambda s: f"{s.sparks_taken:.0%}"),
    ("before the next round", lambda s: "yes" if s.in_time else "**no**"),
)


def _size(size: float) -> str:
    for unit, name in ((1 << 50, "PiB"), (1 << 40, "TiB"), (GIB, "GiB"), (MIB, "MiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size / 1024:g} KiB"
