"""A waveform as long as a stream takes by default is looked at in bounded memory, as a whole and sample by sample; and
so is one that is held, as far as its chunks are there."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.builders.records import metadata
from tests.builders.table_rows import first_head, published_row
from tests.domain.held_rig import T, held_rig
from tests.domain.maintenance_rig import Rig
from tests.hostile.test_memory import in_child
from wavestitch.contracts.ports import StagedFile
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.rows import published_schema
from wavestitch.contracts.stream import Limits
from wavestitch.parquet.published_file import PublishedFile
from wavestitch.parquet.sample_pages import SamplePages, SentSamples
from wavestitch.write_once import digest_file

BYTES = 256 << 20
ROOM = 48 << 20
"""Some pages of a mebibyte and what is kept of the whole; the libraries that are imported meanwhile. Read as one row
the samples alone are 512 MiB, and more with their levels."""
SPIKE = 100_000_007
_LOOK = """
    import json, sys
    from tests.peak_memory import forget_peak, peak_rss
    from wavestitch.batch.deployment import Deployment
    from wavestitch.reading.published_rows import find_published
    from wavestitch.reading.waveform_view import KeptBlocks, view_of
    from wavestitch.settings import load_settings
    from wavestitch.ui.waveform_facts import view_facts

    tables = Deployment(load_settings({"WAVESTITCH_CONFIG": sys.argv[1]})).tables("ecg")
    find_published(tables, "short", None)
    before, kept = forget_peak(), KeptBlocks()
    said = []
    for start, end in json.loads(sys.argv[2]):
        one = find_published(tables, "long", None)
        view = view_of(
            len(one.stored), (start, end), buckets=1000, sample_format="i16le", parts=one.parts, kept=kept, key=(1,)
        )
        told = view_facts(one.row, view)
        said.append([told.get("greatest") and max(told["greatest"]), told.get("raw"), len(json.dumps(told))])
    print(json.dumps([peak_rss() - before, said]))
"""


def test_256_mib_are_shown_as_a_whole_and_sample_by_sample_in_bounded_memory(tmp_path: Path) -> None:
    assert Limits().max_waveform_bytes == BYTES
    rig = Rig(tmp_path)
    samples = np.resize(np.random.default_rng(3).integers(-900, 900, 1 << 20).astype("<i2"), BYTES // 2)
    samples[SPIKE] = 30_000
    rig.tables.commit(None, first_head(), [long_file(rig.tables.data_folder(), samples)])
    parts = [[0, BYTES], [SPIKE - 100_000, SPIKE + 100_000], [SPIKE - 5, SPIKE + 5], [BYTES // 2 - 3, BYTES]]
    grown, said = json.loads(in_child(_LOOK, tmp_path / "wavestitch.toml", json.dumps(parts)))
    assert grown < ROOM
    assert [greatest for greatest, _, _ in said[:2]] == [(30_000 - 2) / 4] * 2
    assert said[2][1] == [str(x) for x in samples[SPIKE - 5 : SPIKE + 5].tolist()]
    assert said[3][1] == [str(x) for x in samples[-3:].tolist()]
    assert max(size for _, _, size in said) < 256 << 10


HELD_MIB = 64
_LOOK_AT_HELD = """
    import json, sys
    from tests.peak_memory import forget_peak, peak_rss
    from wavestitch.batch.deployment import Deployment
    from wavestitch.batch.held_page import held_one
    from wavestitch.reading.held_samples import held_samples
    from wavestitch.reading.waveform_view import KeptBlocks, view_of
    from wavestitch.settings import load_settings
    from wavestitch.ui.waveform_facts import partial_view_facts

    deployment = Deployment(load_settings({"WAVESTITCH_CONFIG": sys.argv[1]}))
    tables = deployment.tables("ecg")
    tables.head()
    before, one = forget_peak(), held_one(deployment, "ecg", "long")
    parts = lambda a, b: held_samples(tables, one.mark, one.partial, a, b)
    view = view_of(
        one.partial.samples, (0, 1 << 40), buckets=1000, sample_format="i16le", parts=parts, kept=KeptBlocks(), key=()
    )
    told = partial_view_facts(one.partial, view)
    greatest = [x for x in told["greatest"] if x is not None]
    print(json.dumps([peak_rss() - before, told["samples"], told["gaps_in_view"], max(greatest), min(greatest)]))
"""


def test_what_is_held_of_a_long_waveform_is_shown_in_less_memory_than_it_has(tmp_path: Path) -> None:
    """Every other chunk of a mebibyte is there, and none is in its order."""
    values = [n.to_bytes(2, "little") * (1 << 19) for n in range(2 * HELD_MIB)]
    there = random.Random(4).sample(range(0, 2 * HELD_MIB, 2), HELD_MIB)
    held = [("long", n, values[n], Reason.OPEN) for n in there]
    held_rig(tmp_path, held, meta=metadata(T), count=2 * HELD_MIB)
    grown, samples, gaps, greatest, least = json.loads(in_child(_LOOK_AT_HELD, tmp_path / "wavestitch.toml"))
    assert (samples, gaps) == (2 * HELD_MIB << 19, HELD_MIB)
    assert (greatest, least) == (2 * HELD_MIB - 2, 0)
    assert grown < ROOM


def long_file(folder: Path, samples: np.ndarray) -> StagedFile:
    """A short waveform, and one with these samples, in chunks of a mebibyte."""
    short = published_row("short", size=20)
    chunk = short["chunks"][0] | {"length": 1 << 20}
    long = published_row("long", size=20) | {
        "sample_count": len(samples),
        "chunk_count": samples.nbytes >> 20,
        "chunks": [chunk | {"offset": n} for n in range(samples.nbytes >> 20)],
    }
    rows = pa.Table.from_pylist([{**row, "samples": []} for row in (short, long)], schema=published_schema("int"))
    data = np.concatenate([np.arange(10, dtype="<i2"), samples]).view(np.uint8)
    path = folder / "long.parquet"
    with path.open("wb") as sink:
        file = PublishedFile(sink, SamplePages("int", "fast"))
        cuts = np.array([0, 20, len(data)])
        file.write_group(rows, SentSamples(data, cuts, ["i16le", "i16le"], "int"))
        file.close()
    return StagedFile(str(path), *digest_file(path, large=True), 2)
