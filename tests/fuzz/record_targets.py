"""Records that live long, and what goes from step to step: read as they were written, or refused with a sentence."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from spark_apps.outcome import read_outcomes
from tests.builders.heads import make_head, make_row
from tests.builders.plans import make_plan, make_slice
from tests.builders.ranges import span
from tests.fuzz.draw import Draw, packed
from tests.fuzz.target import Target, check_sentence
from wavestitch.batch import results, work_folder
from wavestitch.batch.work_folder import WorkFolder
from wavestitch.contracts.batch_row import BATCH_ROWS
from wavestitch.contracts.batch_size import READER_STOP, ReaderStop
from wavestitch.contracts.errors import Altered, BadInput, WavestitchError
from wavestitch.contracts.held_mark import HeldMark
from wavestitch.contracts.holes import Hole, Proof
from wavestitch.contracts.plan import PLANS, plan_from_json
from wavestitch.contracts.position import HeadKind, Position, Tag, head_from_properties, is_ours, parse_tag
from wavestitch.contracts.quantities import EpochMs, LeaderEpoch, Offset, Partition
from wavestitch.contracts.receipt import RECEIPTS, Receipt
from wavestitch.contracts.stitch_job import (
    STITCH_JOBS,
    STITCH_REPORTS,
    StitchJob,
    StitchReport,
    StitchResult,
)
from wavestitch.contracts.verdict import VERDICTS, Verdict
from wavestitch.contracts.versioned import Versioned

_D = "0123456789abcdef" * 2
_SAMPLES: tuple[tuple[Versioned[Any], Any], ...] = (
    (PLANS, make_plan()),
    (RECEIPTS, Receipt("p", 0, [make_slice(0, 4, records=2, holes=[Hole(Offset(1), Offset(3), Proof.ABORTED)])], 1.0)),
    (VERDICTS, Verdict({"w": ("a",)}, ("b",), (), 1, 2, "docs/index.html")),
    (STITCH_JOBS, StitchJob("p", "t", "/f", "/o", "int", "fast", ("a.arrow",), ("b.arrow",))),
    (
        STITCH_REPORTS,
        StitchReport("p", (StitchResult("a", f"stitched-0-{_D}.arrow", f"a-0-{_D}.parquet", 1, _D, 1, 0, 2, 3),)),
    ),
    (BATCH_ROWS, make_row(ranges=[[0, 1, 2]], partitions={"0": {"read": 1}})),
    (READER_STOP, ReaderStop("p", "ingest", (span(0, 1, 2),), 9, 0, 1, 2, 3, 4, {Partition(0): Offset(5)})),
    (work_folder._ABANDONED, work_folder.Abandoned("me", "because", EpochMs(1))),
)
_HEAD = make_head(
    sequence=3,
    kind=HeadKind.INGEST,
    topic_id="T",
    positions={0: Position(Offset(5), EpochMs(7), LeaderEpoch(1)), 1: Position(Offset(0))},
    skipped=(span(0, 1, 2),),
    mean_record_bytes=1.5,
    note="n",
    held=HeldMark(5, 1, 2, _D, {"incomplete": 1}),
)
_STEPS: tuple[tuple[type[Any], Any], ...] = (
    (results.Planned, results.describe_plan(make_plan())),
    (results.Read, results.Read(("a",), 1, 2, 3.0)),
    (results.Reassembled, results.Reassembled(None, ("a",), 1, 2.0)),
    (results.Validated, results.Validated("v", False, True, "n", 0, ("r",), 1.0)),
    (results.Published, results.Published("p", 1, {"a": 1}, {}, {}, True)),
    (results.OffsetsCommitted, results.OffsetsCommitted("done", 0)),
)


def versioned_record(data: bytes) -> None:
    draw = Draw(data)
    kind, _ = draw.pick(_SAMPLES)
    text = draw.rest()
    try:
        found = kind.read(text)
    except BadInput as error:
        check_sentence(error.message)
        return
    assert kind.read(kind.text(found)) == found
    assert kind.read(kind.line(found)) == found
    said = json.loads(text)
    assert 1 <= said["format"] <= kind.format
    # Nothing is converted: what was read is written as it stood, but for what had its default.
    written = json.loads(kind.line(found))
    assert kind.format > said["format"] or kind is PLANS or all(written[key] == said[key] for key in said)


def sealed_plan(data: bytes) -> None:
    try:
        found = plan_from_json(data.decode(errors="surrogateescape"))
    except BadInput as error:
        check_sentence(error.message)
        return
    assert plan_from_json(found.to_json()).plan_id == found.plan_id == found.sealed().plan_id
    assert found.estimated_bytes >= 0 or found.mean_record_bytes < 0 or found.records < 0


def head_properties(data: bytes) -> None:
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(said, dict):
        return
    properties = {key: value if isinstance(value, str) else json.dumps(value) for key, value in said.items()}
    try:
        found = head_from_properties(properties, 42)
    except (BadInput, Altered) as error:
        check_sentence(error.message)
        return
    if found is None:
        assert "wavestitch.format" not in properties
        return
    assert head_from_properties(found.to_properties(), 42) == found
    assert found.next().sequence == found.sequence + 1
    assert parse_tag(found.tag("0-a").encode()) in (found.tag("0-a"), None)


def group_tag(data: bytes) -> None:
    text = data.decode(errors="replace")
    found = parse_tag(text)
    assert found is None or (is_ours(text) and Tag(*found) == parse_tag(found.encode()))
    assert found is None or (found.generation < 10**18 and found.sequence < 10**18)


def step_result(data: bytes) -> None:
    draw = Draw(data)
    kind, _ = draw.pick(_STEPS)
    try:
        said = json.loads(draw.rest())
    except (ValueError, RecursionError):
        return
    try:
        found = results.result_from_json(said, kind)
    except BadInput as error:
        check_sentence(error.message)
        return
    assert isinstance(found, kind | results.Finished)
    assert results.result_from_json(results.result_to_json(found), kind) == found


@cache
def _work() -> WorkFolder:
    """A plan's folder with a file of each kind, links that lead out of it, and a file outside that nobody may open."""
    landing = Path(tempfile.mkdtemp(prefix="wavestitch-fuzz-"))
    folder = WorkFolder(landing, "x", "0" * 32)
    folder.path.mkdir(parents=True)
    outside = landing / f"verdict-{_D}.json"
    outside.write_text("outside")
    folder.write_digested("verdict", "{}")
    (folder.path / f"link-{_D}.json").symlink_to(outside)
    (folder.path / f"zero-{_D}.json").symlink_to("/dev/zero")
    (folder.path / f"held-{_D}.arrow").write_bytes(b"damaged")
    return folder


def file_name(data: bytes) -> None:
    """A name as it comes out of an XCom."""
    draw = Draw(data)
    kind, plan, name = draw.pick(("", "verdict", "receipt", "stitch")), draw.text(), draw.rest()
    text = name.decode(errors="surrogateescape")
    folder = _work()
    try:
        path = folder.intact(text, kind=kind)
    except (BadInput, Altered) as error:
        check_sentence(error.message)
    else:
        assert path.parent == folder.path
        assert path.is_file()
        assert not path.is_symlink()
        assert path.name.startswith(kind)
    try:
        WorkFolder(folder.path.parent.parent, "x", plan)
    except BadInput as error:
        check_sentence(error.message)
    else:
        assert len(plan) == 32
        assert plan.isalnum()


def task_outcome(data: bytes) -> None:
    """What a task of Spark's says to its driver."""
    try:
        found = read_outcomes([data.decode(errors="surrogateescape")])
    except WavestitchError as error:
        check_sentence(error.message)
        return
    assert all(isinstance(result, StitchResult) for result in found)


def _seeds_of(kinds: Any, text: Callable[[Any, Any], str]) -> Iterator[bytes]:
    yield from (packed(n) + text(kind, sample).encode() for n, (kind, sample) in enumerate(kinds))


def _head_seeds() -> Iterator[bytes]:
    yield json.dumps(_HEAD.to_properties()).encode()
    yield json.dumps(replace(_HEAD, held=None, mean_record_bytes=None, skipped=()).to_properties()).encode()
    yield b"{}"
    yield b'{"wavestitch.format": "1"}'
    yield json.dumps({**_HEAD.to_properties(), "wavestitch.positions": "[1]"}).encode()
    yield json.dumps({**_HEAD.to_properties(), "wavestitch.held": "[1]"}).encode()


def _outcome_seeds() -> Iterator[bytes]:
    result = StitchResult("a", f"stitched-0-{_D}.arrow", None, 0, "", 0, 1, 2, 3)
    yield json.dumps({"result": json.loads(result.to_json())}).encode()
    yield b'{"error": "Altered", "message": "m", "facts": {"file": "f"}}'


_WORDS = ("format", "newer", "true", "null", "1e999", "-1", '"0"', "{}", "[]", "9007199254740993")

TARGETS = (
    Target("versioned_record", versioned_record, lambda: _seeds_of(_SAMPLES, lambda k, s: k.line(s)), _WORDS),
    Target("sealed_plan", sealed_plan, lambda: [PLANS.line(make_plan()).encode()], _WORDS),
    Target("head_properties", head_properties, _head_seeds, (*_HEAD.to_properties(), *_WORDS)),
    Target(
        "group_tag",
        group_tag,
        lambda: [b"wavestitch/2 0-a g1 s2", b"wavestitch/3 x"],
        ("wavestitch/2 ", " g", " s"),
        200,
    ),
    Target(
        "step_result",
        step_result,
        lambda: _seeds_of(_STEPS, lambda _, s: json.dumps(results.result_to_json(s))),
        ("result", "Finished", "NothingToDo", *_WORDS),
    ),
    Target(
        "file_name",
        file_name,
        lambda: [
            packed(0, "0" * 32) + f"{n}-{d}".encode()
            for n, d in (
                ("link", f"{_D}.json"),
                ("zero", f"{_D}.json"),
                ("held", f"{_D}.arrow"),
                ("../../verdict", f"{_D}.json"),
                ("verdict", "44136fa355b3678a1146ad16f7e8649e.json"),
            )
        ],
        ("../", "/dev/zero", "verdict-44136fa355b3678a1146ad16f7e8649e.json", "\n", "\0"),
        300,
    ),
    Target("task_outcome", task_outcome, _outcome_seeds, ("result", "error", "facts", "message", *_WORDS), 1000),
)
