"""From a corpus on disk to a stitch job, the way the driver-side step does it; and the staged rows read back."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_apps.assignment import write_assignment
from tests.builders.published_bytes import rows_with_bytes
from tests.domain.landed_corpus import TOPIC_ID, Sent, land, lay_out, no_chunk
from wavestitch.contracts.assembly import ChunkFacts, assemble
from wavestitch.contracts.quantities import Seconds
from wavestitch.contracts.sample_kinds import Encoding, SampleType
from wavestitch.contracts.stitch_job import StitchJob, StitchResult
from wavestitch.contracts.stream import Limits
from wavestitch.contracts.whole_waveforms import StitchTable, deal_out

PLAN_ID = "f00dfeed" * 4
LIMITS = Limits(max_clock_skew=Seconds(100 * 365 * 86400))


@dataclass
class Landed:
    """A corpus on disk: `rows[n]` are the landing rows of `files[n]`."""

    folder: Path
    sent: list[Sent]
    files: list[Path]
    rows: list[list[dict[str, Any]]]

    def chunks_of(self, sent: Sent) -> list[dict[str, Any]]:
        mine = [r for rows in self.rows for r in rows if r.get("waveform_id") == sent.waveform_id]
        return sorted(mine, key=lambda r: r["seq"])

    def facts(self, first_file: int = 0) -> list[ChunkFacts]:
        names = (
            "partition",
            "offset",
            "timestamp_ms",
            "waveform_id",
            "seq",
            "count",
            "crc",
            "length",
            "meta",
            "digest",
            "piece",
        )
        return [
            ChunkFacts(*(r.get(n) for n in names), r.get("reason"), None, file=first_file + n, row=i)  # type: ignore[call-arg, misc]
            for n, rows in enumerate(self.rows)
            for i, r in enumerate(rows)
        ]

    def expected(self) -> dict[str, dict[str, Any]]:
        return {s.waveform_id: s.expected(self.chunks_of(s)) for s in self.sent}


def land_corpus(
    folder: Path, rng: random.Random, sent: Sequence[Sent], *, layout: str, files: int, quiet: bool = False
) -> Landed:
    """`quiet`: one record batch a file and no other records between, so that nothing cuts a waveform."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = lay_out(rng, sent, layout, files)
    for mine in rows:
        for _ in range(0 if quiet else rng.randint(0, 2)):
            mine.insert(rng.randint(0, len(mine)), {**no_chunk(rng), "partition": 99, "offset": len(mine)})
    paths = [folder / f"{layout.replace(' ', '-')}-{n}.arrow" for n in range(files)]
    for path, mine in zip(paths, rows, strict=True):
        land(path, mine, rng, batch_rows=len(mine) if quiet else None)
    return Landed(folder, list(sent), paths, rows)


def make_job(
    folder: Path,
    corpora: Sequence[Landed],
    *,
    samples: SampleType = "double",
    encoding: Encoding = "fast",
    task_bytes: int = 1 << 30,
    tasks: int = 1,
    held: Mapping[str, str] | None = None,
) -> StitchJob:
    """One job over all corpora, their files numbered through. `held`: by waveform, the topic that its chunks were held
    from."""
    facts: list[ChunkFacts] = []
    files: list[Any] = []
    for landed in corpora:
        found = landed.facts(first_file=len(files))
        facts += [c._replace(topic_id=(held or {}).get(str(c.waveform_id), "")) for c in found]
        files += [str(p) for p in landed.files]
    whole = [a for a in assemble(facts, LIMITS).values() if a.reason is None]
    assert len(whole) == sum(len(c.sent) for c in corpora)
    waves = StitchTable.of(whole)
    dealt = deal_out(waves, task_bytes=task_bytes, tasks_at_least=tasks)
    names = tuple(write_assignment(folder, waves.chosen(task)) for task in dealt)
    return StitchJob(PLAN_ID, TOPIC_ID, str(folder), str(folder / "out"), samples, encoding, tuple(files), names)


def staged(job: StitchJob, results: Sequence[StitchResult]) -> dict[str, dict[str, Any]]:
    """All staged rows by waveform id, samples as they were sent, less the fields that are the job's."""
    found: dict[str, dict[str, Any]] = {}
    for r in results:
        if r.file is not None:
            for row in rows_with_bytes(pq.read_table(Path(job.output_folder) / r.file)):
                assert row.pop("plan_id") == PLAN_ID
                assert row.pop("topic_id") == TOPIC_ID
                assert row["waveform_id"] not in found
                found[row["waveform_id"]] = row
    return found


def slim(job: StitchJob, results: Sequence[StitchResult]) -> dict[str, dict[str, Any]]:
    """All `STITCHED` rows by waveform id."""
    tables = [pa.ipc.open_file(Path(job.folder, r.stitched).read_bytes()).read_all() for r in results]
    return {row["waveform_id"]: row for t in tables for row in t.to_pylist()}
