"""How large samples are on disk, in which encoding and beside what; how fast one core writes them; and how many files
one waveform, and one source's hour, open in a day of many batches. No broker and no Spark: the writer and the table.
"""

from __future__ import annotations

import io
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from benchmarks.children import Json
from benchmarks.figures import ratio
from benchmarks.options import Options
from benchmarks.synthetic_rows import DAY, published_table, write_published
from benchmarks.test_bed import Say, TestBed
from wavestitch.contracts.rows import published_schema
from wavestitch.contracts.sample_kinds import Encoding, SampleType
from wavestitch.contracts.whole_waveforms import StitchTable, deal_out
from wavestitch.parquet.published_file import PublishedFile
from wavestitch.parquet.sample_pages import SamplePages, SentSamples
from wavestitch.producers.readers import read_recordings

ROOT = Path(__file__).resolve().parents[2]
_MIB = 64
_BATCHES, _SOURCES = 288, 40
Signal = tuple[str, SampleType, Any]


def measure(bed: TestBed, options: Options, say: Say) -> Json:
    rows: list[list[object]] = []
    found: dict[str, Any] = {}
    for name, (sample_format, samples, values) in _signals().items():
        binary = _binary(values)
        found[name] = {"binary zstd-1": {"ratio": binary[0], "mb_s": binary[1]}}
        rows.append([name, "as bytes, zstd-1 (before)", binary[0], binary[1]])
        for encoding in get_args(Encoding):
            act = partial(_typed, values, sample_format, samples, encoding)
            smaller, speed = _best(act, options.rounds)
            found[name][encoding] = {"ratio": smaller, "mb_s": speed}
            rows.append([name, f"list<{samples}>, {encoding}", smaller, speed])
            say(f"{name}, {encoding}: {smaller:.2f}, {speed:.0f} MB/s")
    seismic = ROOT / "examples/seismic/IU.COLA.mseed"
    sent = sum(len(r.samples) for r in read_recordings(seismic, seconds_per_recording=600))
    steim = sent / seismic.stat().st_size
    rows.append(["IU.COLA", "miniSEED, Steim-2", steim, None])
    found["small_of_mseed"] = ratio(found["IU.COLA"]["small"]["ratio"], steim)
    touched = _touched(bed, say)
    rows += [[f"files of {touched['files']} that {what} opens", "", n, None] for what, n in touched["opened"].items()]
    return {**found, **touched, "table": [["signal", "how", "bytes sent / on disk", "MB/s, one core"], *rows]}


def _signals() -> dict[str, Signal]:
    """The two real ones of the examples, and three made ones of 64 MiB with noise of their own kind."""
    rng = np.random.default_rng(1)
    n = (_MIB << 20) // 2
    beat = 300 * np.sin(np.arange(n) / 57.0) + np.where(np.arange(n) % 360 < 12, 900, 0)
    start_ns = int(DAY.timestamp()) * 10**9
    found = read_recordings(ROOT / "examples/ecg/mitdb-208-mlii.npz", seconds_per_recording=600, start_time_ns=start_ns)
    ecg = b"".join(r.samples for r in found)
    found = read_recordings(ROOT / "examples/seismic/IU.COLA.mseed", seconds_per_recording=600)
    cola = b"".join(r.samples for r in found)
    return {
        "ECG of MIT-BIH 208": ("i16le", "int", np.frombuffer(ecg, "<i2")),
        "IU.COLA": ("i32le", "int", np.frombuffer(cola, "<i4")),
        "ECG, 16 bit, noise": ("i16le", "int", (beat + rng.normal(0, 12, n)).astype("<i2")),
        "seismometer, 32 bit": ("i32le", "int", np.cumsum(rng.normal(0, 300, n // 2)).astype("<i4")),
        "random walk, float": ("f32le", "float", np.cumsum(rng.normal(0, 1, n // 2)).astype("<f4")),
    }


def _best(act: Callable[[], tuple[float, float]], rounds: int) -> tuple[float, float]:
    runs = [act() for _ in range(max(1, rounds))]
    return runs[0][0], max(speed for _, speed in runs)


def _typed(values: Any, sample_format: str, samples: SampleType, encoding: Encoding) -> tuple[float, float]:
    """In waveforms of a MiB. Bytes sent over bytes on disk, and MB sent a CPU second."""
    data = values.view(np.uint8)
    cuts = np.minimum(np.arange(0, len(data) + (1 << 20), 1 << 20), len(data))
    cuts = np.unique(cuts)
    n = len(cuts) - 1
    slim = published_table([f"w{i}" for i in range(n)], start_us=0, step_us=1, samples=[b""] * n).drop_columns(
        ["samples"]
    )
    sink = io.BytesIO()
    began = time.process_time()
    file = PublishedFile(sink, SamplePages(samples, encoding))
    file.write_group(slim, SentSamples(data, cuts, [sample_format] * n, samples))
    file.close()
    return len(data) / sink.tell(), len(data) / 1e6 / max(time.process_time() - began, 1e-6)


def _binary(values: Any) -> tuple[float, float]:
    raw = values.tobytes()
    began = time.process_time()
    codec = pa.Codec("zstd", compression_level=1)
    size = sum(codec.compress(raw[i : i + (1 << 20)]).size for i in range(0, len(raw), 1 << 20))
    return len(raw) / size, len(raw) / 1e6 / max(time.process_time() - began, 1e-6)


def _touched(bed: TestBed, say: Say) -> dict[str, Any]:
    """A day of batches every five minutes, two tasks each, dealt out as a batch deals out what comes in turns."""
    stream = "touched"
    bed.declare(stream, stream)
    tables = bed.deployment().tables(stream)
    folder = tables.data_folder()
    stored = tables.stored()[0]
    paths = []
    for batch in range(_BATCHES):
        waves = _in_turns(batch)
        for n, task in enumerate(deal_out(waves, task_bytes=1 << 30, tasks_at_least=2)):
            some = waves.chosen(task)
            starts = {"start_us": batch * 300 * 10**6, "step_us": 1}
            rows = published_table(some.ids.to_pylist(), **starts, samples=[b"\1\0"] * len(some))
            at = published_schema("int").names.index("source")
            rows = rows.set_column(at, rows.schema.field("source"), some.sources.cast(pa.string()))
            paths.append(write_published(folder / f"b{batch:05}-{n}.parquet", rows))
    stored.commit_files(stored.ensure(), paths)
    table = stored.ensure()
    asked = {
        "one waveform, by bounds alone,": "waveform_id = 'ward-07/00100'",
        "one source's hour": "source = 'ward-07' and start_time >= '2026-01-01T08:00:00+00:00' "
        "and start_time < '2026-01-01T09:00:00+00:00'",
    }
    opened = {what: len(list(table.scan(row_filter=text).plan_files())) for what, text in asked.items()}
    tables.published(["ward-07/00100"])  # as each batch does it, and has an index then
    opened["one waveform, by the index of ids,"] = len(tables.files_with(table, ["ward-07/00100"]) or [])
    say(f"of {len(paths)} files: {opened}")
    shutil.rmtree(folder, ignore_errors=True)
    bed.forget(stream)
    return {"files": len(paths), "opened": opened}


def _in_turns(batch: int) -> StitchTable:
    """A waveform of each source, as they lie in the log."""
    sources = [f"ward-{n * 7 % _SOURCES:02}" for n in range(_SOURCES)]
    start_ns = int(DAY.timestamp()) * 10**9 + batch * 300 * 10**9
    ordinals = np.arange(_SOURCES)
    return StitchTable(
        ids=pa.array([f"{s}/{batch:05}" for s in sources]),
        metas=pa.array([""] * _SOURCES),
        digests=pa.array([""] * _SOURCES),
        sources=pa.array(sources),
        starts=np.full(_SOURCES, start_ns),
        first=np.arange(_SOURCES + 1),
        sizes=np.full(_SOURCES, 1 << 20),
        pieces={"row": ordinals, "file": np.zeros(_SOURCES, np.int64)},
    )
