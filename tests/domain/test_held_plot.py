"""The plot of a waveform that is held: what its chunks have, wherever they lie in real tables, and the gaps."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.builders.deleted_rows import delete_rows
from tests.builders.records import metadata
from tests.domain.held_rig import T, held_rig
from tests.domain.maintenance_rig import STREAM, Rig
from wavestitch.batch.held_page import HeldOne, held_one
from wavestitch.contracts.errors import Altered
from wavestitch.contracts.reasons import Reason
from wavestitch.reading.held_samples import held_samples
from wavestitch.reading.waveform_view import KeptBlocks, view_of
from wavestitch.tables.commit.own_place import local_path
from wavestitch.tables.held import held_values
from wavestitch.ui import held_pages
from wavestitch.ui.held_pages import held_one_page
from wavestitch.ui.waveform_facts import partial_view_facts

COUNT, LONG = 30, 1000
THERE = sorted(random.Random(5).sample(range(COUNT), 17))
SENT = np.random.default_rng(2).integers(-900, 900, COUNT * LONG).astype("<i2")


def chunk_bytes(seq: int) -> bytes:
    return SENT[seq * LONG : (seq + 1) * LONG].tobytes()


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    """In no order; beside them chunks of others, and one that says something else."""
    rows = [("w", seq, chunk_bytes(seq), Reason.CONFLICT) for seq in THERE]
    rows += [(f"other-{n}", 0, bytes([n, 0]), Reason.OPEN) for n in range(5)]
    random.Random(3).shuffle(rows)
    rows.append(("w", THERE[4], b"\x07\x00" * LONG, Reason.CONFLICT))
    meta = metadata(T, adc_gain=2.0, sample_count=COUNT * LONG)
    return held_rig(tmp_path_factory.mktemp("held"), rows, meta=meta, count=COUNT)


def seen(rig: Rig, start: int, end: int, *, copy: str = "first", buckets: int = 100) -> dict:
    one = looked_at(rig, copy)
    about = one.partial
    assert about is not None
    view = view_of(
        about.samples,
        (start, end),
        buckets=buckets,
        sample_format="i16le",
        parts=lambda a, b: held_samples(rig.tables, one.mark, about, a, b),
        kept=KeptBlocks(),
        key=(about.digest,),
    )
    return partial_view_facts(about, view)


def looked_at(rig: Rig, copy: str = "first") -> HeldOne:
    one = held_one(rig.deployment, STREAM, "w", copy)
    assert isinstance(one, HeldOne)
    return one


def there(n: int) -> bool:
    return n // LONG in THERE


@pytest.mark.parametrize("part", [(0, 4000), (LONG - 3, LONG + 3), (7 * LONG, 9 * LONG + 1), (29_999, 10**9)])
def test_any_part_is_what_was_sent_as_far_as_its_chunks_are_there(rig: Rig, part: tuple[int, int]) -> None:
    said = seen(rig, *part)
    numbers = range(said["start"], said["end"])
    assert said["raw"] == [str(SENT[n]) if there(n) else None for n in numbers]
    assert said["physical"] == [SENT[n] / 2 if there(n) else None for n in numbers]
    missing = {n for gap in said["gaps"] for n in range(gap["start"], gap["end"])}
    assert [n in missing for n in numbers] == [not there(n) for n in numbers]
    assert said["lacking"] == []
    places = {n: c["offset"] for c in said["chunks"] for n in range(c["start"], c["end"])}
    assert [n in places for n in numbers] == [there(n) for n in numbers]


def test_the_whole_is_least_and_greatest_of_what_is_there(rig: Rig) -> None:
    said = seen(rig, 0, 10**9)
    width = said["width"]
    for n, (least, greatest) in enumerate(zip(said["least"], said["greatest"], strict=True)):
        some = [SENT[i] / 2 for i in range(n * width, min((n + 1) * width, COUNT * LONG)) if there(i)]
        assert (least, greatest) == (min(some, default=None), max(some, default=None))
    assert said["gaps_in_view"] == len(said["gaps"]) > 3
    assert said["lacking"] == []


def test_of_a_contradiction_each_copy_can_be_looked_at(rig: Rig) -> None:
    at = THERE[4] * LONG
    assert seen(rig, at, at + 2)["raw"] == [str(x) for x in SENT[at : at + 2]]
    assert seen(rig, at, at + 2, copy="last")["raw"] == ["7", "7"]
    html = held_one_page(STREAM, looked_at(rig))
    assert "Drawn is one copy, as <code>pick</code> would take it, without the 1 chunk that says something else" in html
    assert 'href="one?id=w&amp;copy=last"' in html
    assert 'data-view="view?id=w&amp;copy=last"' in held_one_page(STREAM, looked_at(rig, "last"), copy="last")


def test_the_page_has_the_headers_that_are_kept_and_each_text_of_ws_meta_once(rig: Rig) -> None:
    one = looked_at(rig)
    html = held_one_page(STREAM, one)
    assert html.count("adc_gain") == 1
    for h in one.waveform.held:
        assert f"{h.chunk.partition}:{h.chunk.offset}</td>" in html
        assert f"<code>{h.chunk.crc:08x}</code>" in html
    assert "headers that are not the contract's, are not kept" in " ".join(html.split())


def test_more_bytes_than_a_page_reads_are_not_drawn(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_pages, "MOST_DRAWN", 1)
    html = held_one_page(STREAM, looked_at(rig))
    assert f"the chunks have {len(THERE) * LONG * 2} bytes, more than the 1 that a page reads" in html
    assert "data-view" not in html


def test_rows_that_another_tool_deleted_move_nothing(tmp_path: Path) -> None:
    rows = [("a", 0, b"\1\0", Reason.OPEN), ("w", 0, b"\2\0", Reason.OPEN), ("w", 1, b"\3\0", Reason.OPEN)]
    rig = held_rig(tmp_path, rows, count=3)
    head = rig.tables.head()
    held = rig.tables._held.load()
    delete_rows(held, ["a"])
    one = looked_at(rig)
    newest = rig.tables._held.load().current_snapshot()
    found = held_values.stored_payloads(
        rig.tables._held.load(), newest.snapshot_id, [h.chunk.key for h in one.waveform.held]
    )
    assert head is not None
    assert {key[1][1]: bytes(payload) for key, payload in found} == {0: b"\2\0", 1: b"\3\0"}


def test_other_bytes_than_those_that_were_held_are_not_shown(tmp_path: Path) -> None:
    rig = held_rig(tmp_path, [("w", 0, b"\1\0\2\0", Reason.OPEN)])
    (task,) = rig.tables._held.load().scan().plan_files()
    path = Path(local_path(task.file.file_path))
    rows = pq.read_table(path)
    other = rows.set_column(rows.schema.get_field_index("payload"), rows.schema.field("payload"), [[b"\1\0\3\0"]])
    pq.write_table(other, path)
    with pytest.raises(Altered, match="is held with other bytes"):
        seen(rig, 0, 2)
