"""Anything at all in the files between the steps: an error of the tree, or exactly what was landed; never a crash.

`WAVESTITCH_DEEP` makes it try more. What was once found is kept as an example.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from consumers.landed_file import besides_payload, open_landing, read_index
from spark_apps.outcome import read_outcomes, run_task
from tests.builders.landing import land_records
from tests.builders.plans import make_plan, make_receipt, make_slice
from tests.builders.ranges import span
from tests.domain.effort import FACTOR, effort
from tests.domain.landed_corpus import random_waveform
from tests.domain.stitch_rig import land_corpus, make_job, staged
from tests.hostile.kind import chunked, sealed
from tests.hostile.refusing import value_or_refusal
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.errors import Altered, BadInput, DataLost, WavestitchError
from wavestitch.contracts.holes import Hole, Proof
from wavestitch.contracts.landed_payload import take_proven
from wavestitch.contracts.plan import Plan, plan_from_json
from wavestitch.contracts.quantities import Offset
from wavestitch.contracts.receipt import LandedSlice, Receipt, check_coverage, receipt_from_json
from wavestitch.contracts.verdict import Verdict, verdict_from_json

SEED = 20261121
flips = st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(1, 255)), min_size=1, max_size=4)


def flipped(content: bytes, wanted: list[tuple[int, int]]) -> bytes:
    found = bytearray(content)
    for at, mask in wanted:
        found[at % len(found)] ^= mask
    return bytes(found)


def overwrite(path: Path, content: bytes) -> None:
    """A new file under the name: whoever has the old one mapped keeps it."""
    path.unlink()
    path.write_bytes(content)


def land(folder: Path) -> LandedSlice:
    """Ten chunks and two records that are none, as the reader lands them."""
    records = [*chunked("w", 10), sealed("w", ws_crc=b"x"), sealed("", meta=b"{")]
    return land_records(folder, span(0, 0, 12), ((n, 1000 + n, r) for n, r in enumerate(records)))


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LandedSlice]:
    folder = tmp_path_factory.mktemp("landing")
    return folder, land(folder)


@effort(150)
@given(wanted=flips, cut=st.integers(0, 64))
@example(
    wanted=[(1736, 128)], cut=0
)  # where a payload begins: followed before it was looked at, the process died of it
def test_no_change_of_a_landing_file_is_taken_for_what_was_landed(
    landing: tuple[Path, LandedSlice], wanted: list[tuple[int, int]], cut: int
) -> None:
    folder, written = landing
    path = folder / str(written.file)
    content = path.read_bytes()
    landed = open_landing(path)
    overwrite(path, flipped(content, wanted)[: len(content) - cut])
    try:
        found = value_or_refusal(lambda: taken(folder, written), allowed=Altered)
    finally:
        overwrite(path, content)
    # What lies between the columns means nothing, and may change.
    assert isinstance(found, Altered) or (found.equals(landed) and not cut)  # type: ignore[union-attr]


def taken(folder: Path, written: LandedSlice) -> pa.Table:
    """All rows, as those who take all of them would: the index proven, then each payload."""
    read_index(folder, written)
    table = open_landing(folder / str(written.file))
    for batch in table.to_batches():
        take_proven(str(written.file), batch, range(batch.num_rows))
    return table


def index_or_error(folder: Path, written: LandedSlice, content: bytes) -> None:
    """Read a file whose receipt agrees with it, whatever it is."""
    path = folder / "changed.arrow"
    path.unlink(missing_ok=True)
    path.write_bytes(content)

    def read() -> list[ChunkFacts]:
        agreeing = replace(written, file=path.name, file_bytes=len(content))
        table, seen = open_landing(path), hashlib.sha256()
        # To digest what is no valid table may end this process; the reader is to find that out by itself.
        with suppress(pa.ArrowException):
            table.drop_columns(["payload"]).validate(full=True)
            for batch in table.to_batches():
                seen.update(besides_payload(batch))
            agreeing = replace(agreeing, index_digest=seen.hexdigest())
        return list(ChunkTable.of_index(read_index(folder, agreeing), 0))

    found = value_or_refusal(read, allowed=Altered)
    assert isinstance(found, Altered) or [c.offset for c in found] == list(range(12))  # type: ignore[union-attr]


@effort(200)
@given(wanted=flips)
@example(wanted=[(1377, 1)])  # unchecked, a length that became an address: the process died of it
def test_damage_that_a_receipt_agrees_with_is_an_error_or_rows_of_the_slice(
    landing: tuple[Path, LandedSlice], wanted: list[tuple[int, int]]
) -> None:
    folder, written = landing
    index_or_error(folder, written, flipped((folder / str(written.file)).read_bytes(), wanted))


def test_no_single_bit_of_the_index_makes_reading_crash(landing: tuple[Path, LandedSlice]) -> None:
    """Every third byte of the file, one bit of each; every byte where there is time."""
    folder, written = landing
    content = (folder / str(written.file)).read_bytes()
    for at in range(0, len(content), 3 if FACTOR == 1 else 1):
        index_or_error(folder, written, flipped(content, [(at, 1 << at % 8)]))


@pytest.fixture(scope="module")
def stitch(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bytes | None], Any]:
    """Stitches a small landing with these bytes (None: its own): all staged rows, or the error."""
    folder, rng = tmp_path_factory.mktemp("stitch"), random.Random(SEED)
    sent = [random_waveform(rng, f"w{n}", longest=40) for n in range(4)]
    corpus = land_corpus(folder, rng, sent, layout="hashed", files=1)
    job, (path,) = make_job(folder, [corpus]), corpus.files
    whole = path.read_bytes()

    def run(content: bytes | None) -> Any:
        if content is None:
            return whole
        overwrite(path, content)
        try:
            return staged(job, read_outcomes([run_task(job, a) for a in job.assignments]))
        except WavestitchError as error:
            return error
        finally:
            overwrite(path, whole)

    return run


def check_stitched(stitch: Callable[[bytes | None], Any], wanted: list[tuple[int, int]]) -> None:
    whole = stitch(None)
    found = stitch(flipped(whole, wanted))
    assert isinstance(found, Altered | BadInput) or found == stitch(whole)


@effort(40)
@given(wanted=flips)
@example(wanted=[(11452, 1)])  # "Integers not in cstdint are not implemented", once
@example(wanted=[(11648, 255)])
@example(wanted=[(100000, 1)])  # where payloads begin, in bytes that are no multiple of four
def test_damage_after_a_file_was_verified_is_found_by_the_task_or_harms_nothing(
    stitch: Callable[[bytes | None], Any], wanted: list[tuple[int, int]]
) -> None:
    check_stitched(stitch, wanted)


def test_no_damage_to_what_describes_the_payload_crashes_the_task(stitch: Callable[[bytes | None], Any]) -> None:
    """The last stretch of the file, where Arrow says what lies where: all bits of every eleventh byte, or of each."""
    size = len(stitch(None))
    for at in range(size - 1200, size, 11 if FACTOR == 1 else 1):
        check_stitched(stitch, [(at, 0xFF)])


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 30) | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


def spots(found: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    inner = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    return [path, *(p for k, v in inner for p in spots(v, (*path, k)))]


def replaced(text: str, pick: int, value: Any, *, drop: bool) -> str:
    """The JSON text with one place of it changed or dropped."""
    found = json.loads(text)
    places = spots(found)
    path = places[pick % len(places)]
    if not path:
        return json.dumps(value)
    inner = found
    for step in path[:-1]:
        inner = inner[step]
    if drop:
        inner.pop(path[-1])
    else:
        inner[path[-1]] = value
    return json.dumps(found)


@effort(150)
@given(pick=st.integers(0, 200), value=json_values, drop=st.booleans())
@example(pick=3, value="../../etc/passwd", drop=False)
@example(pick=0, value=[], drop=False)
def test_a_receipt_changed_anywhere_is_refused_or_still_explains_every_offset(
    pick: int, value: Any, drop: bool
) -> None:
    whole = make_receipt(
        make_slice(5, 7, holes=[Hole(Offset(6), Offset(7), Proof.CONTROL)], records=1), make_slice(7, 9)
    )

    def read() -> Receipt:
        found = receipt_from_json(replaced(whole.to_json(), pick, value, drop=drop))
        check_coverage(make_plan(), [found])
        return found

    found = value_or_refusal(read, allowed=(BadInput, DataLost))
    if not isinstance(found, Receipt):
        return
    for s, was in zip(found.slices, whole.slices, strict=True):
        assert (s.partition, s.start, s.end, s.file) == (was.partition, was.start, was.end, was.file)
        assert s.records + sum(hole.end - hole.start for hole in s.holes) == s.end - s.start


@effort(150)
@given(pick=st.integers(0, 200), value=json_values, drop=st.booleans())
@example(pick=0, value=7, drop=False)
def test_a_plan_changed_anywhere_is_refused(pick: int, value: Any, drop: bool) -> None:
    plan: Plan = make_plan()
    changed = replaced(plan.to_json(), pick, value, drop=drop)
    found = value_or_refusal(lambda: plan_from_json(changed), allowed=BadInput)
    assert isinstance(found, BadInput) or found == plan


@effort(200)
@given(pick=st.integers(0, 60), value=json_values, drop=st.booleans())
@example(pick=1, value=None, drop=False)
@example(pick=1, value="", drop=False)  # once an open gate
def test_a_verdict_changed_anywhere_is_refused_or_a_verdict(pick: int, value: Any, drop: bool) -> None:
    whole = Verdict({"w": ("why",)}, ("closed",), ("reported",), rows=3, expectations=2)
    changed = replaced(whole.to_json(), pick, value, drop=drop)
    found = value_or_refusal(lambda: verdict_from_json(changed), allowed=BadInput)
    # As JSON: a NaN is not equal to itself.
    assert isinstance(found, BadInput) or verdict_from_json(found.to_json()).to_json() == found.to_json()  # type: ignore[arg-type]


@effort(200)
@given(text=st.text(max_size=40) | st.sampled_from(["[" * 9000, "9" * 5000, "\x00", "{}", "null"]))
def test_any_text_in_place_of_a_file_of_a_step_is_refused(text: str) -> None:
    for read in (receipt_from_json, plan_from_json, verdict_from_json):
        with pytest.raises(BadInput):
            read(text)
