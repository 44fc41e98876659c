"""How waveforms are dealt out to Spark tasks, and the job's and report's way through JSON. No I/O."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.chunks import make_chunk
from tests.builders.records import metadata
from wavestitch.contracts.assembly import Assembly, ChunkFacts, assemble_waveform
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stitch_job import (
    StitchJob,
    StitchReport,
    StitchResult,
    stitch_job_from_json,
    stitch_report_from_json,
)
from wavestitch.contracts.stream import Limits
from wavestitch.contracts.whole_waveforms import StitchTable, deal_out

DAY_MS = 86_400_000
DAY_NS = DAY_MS * 1_000_000
JOB = StitchJob(
    "p" * 32, "topic-id", "/landing/p", "/staged", "int", "small", ("a.arrow", "/held.arrow"), ("assignment-1.arrow",)
)
DIGEST = "d" * 32
RESULT = StitchResult(
    "assignment-1.arrow", f"stitched-1-{DIGEST}.arrow", f"x-1-{DIGEST}.parquet", 10, DIGEST, 2, 1, 5, 400
)


def whole(waveform_id: str, *, size: int = 100, day: int = 0, file: int = 0, row: int = 0) -> Assembly:
    chunk = of_day(day)._replace(waveform_id=waveform_id, length=size, file=file, row=row)
    return assemble_waveform(waveform_id, [chunk], Limits())


@cache
def of_day(day: int) -> ChunkFacts:
    return make_chunk(count=1, meta=metadata(day * DAY_MS), time_ms=day * DAY_MS)


def assign_waveforms(whole: list[Assembly], *, task_bytes: int, tasks_at_least: int) -> list[list[Assembly]]:
    by_id = {a.waveform_id: a for a in whole}
    table = StitchTable.of(whole)
    tasks = deal_out(table, task_bytes=task_bytes, tasks_at_least=tasks_at_least)
    return [[by_id[i] for i in table.chosen(task).ids.to_pylist()] for task in tasks]


waveforms = st.lists(
    st.builds(
        whole,
        st.text(min_size=1, max_size=8),
        size=st.integers(1, 5000),
        day=st.integers(-3, 3),
        file=st.integers(0, 4),
        row=st.integers(0, 200),
    ),
    unique_by=(lambda a: a.waveform_id, lambda a: (a.pieces[0].file, a.pieces[0].row)),
    max_size=60,
)


@given(waveforms, st.integers(1, 20_000), st.integers(1, 8), st.randoms())
def test_every_waveform_is_in_exactly_one_task_and_a_task_has_one_day(
    given_: list[Assembly], task_bytes: int, tasks_at_least: int, random: object
) -> None:
    tasks = assign_waveforms(given_, task_bytes=task_bytes, tasks_at_least=tasks_at_least)
    assert sorted(a.waveform_id for t in tasks for a in t) == sorted(a.waveform_id for a in given_)
    for t in tasks:
        assert len({a.metadata.start_time_ns // DAY_NS for a in t}) == 1
        assert sum(a.byte_length for a in t) <= task_bytes + max(a.byte_length for a in t)
    shuffled = list(given_)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert assign_waveforms(shuffled, task_bytes=task_bytes, tasks_at_least=tasks_at_least) == tasks


def test_waveforms_that_lie_together_stay_together_in_order() -> None:
    laid = [whole(f"w{n}", file=n // 10, row=n % 10) for n in range(40)]
    tasks = assign_waveforms(laid[::-1], task_bytes=1000, tasks_at_least=1)
    assert [[a.waveform_id for a in t] for t in tasks] == [[f"w{n}" for n in range(k, k + 10)] for k in (0, 10, 20, 30)]


def test_a_source_is_in_few_tasks_in_order_of_time_however_the_waveforms_lie_on_disk() -> None:
    laid = [
        recorded(f"w{n:02}", source=("é", "b", "a", "\U0001f600")[n % 4], start_ns=(39 - n) * 10**9, row=n)
        for n in range(40)
    ]
    tasks = assign_waveforms(laid, task_bytes=1000, tasks_at_least=1)
    found = [[(a.metadata.source, a.metadata.start_time_ns) for a in t] for t in tasks]
    # As the bounds of a column compare them: by bytes of UTF-8.
    laid_out = [one for task in found for one in task]
    assert laid_out == sorted(laid_out, key=lambda x: (x[0].encode(), x[1]))
    assert [{source for source, _ in t} for t in found] == [{"a"}, {"b"}, {"é"}, {"\U0001f600"}]


def recorded(waveform_id: str, *, source: str, start_ns: int, row: int) -> Assembly:
    chunk = make_chunk(count=1, meta=metadata(0), time_ms=start_ns // 10**6)
    meta = json.dumps({**json.loads(chunk.meta or ""), "source": source, "start_time_ns": start_ns})
    return assemble_waveform(
        waveform_id, [chunk._replace(waveform_id=waveform_id, meta=meta, length=100, file=0, row=row)], Limits()
    )


def test_equal_waveforms_fill_all_workers_evenly() -> None:
    tasks = assign_waveforms([whole(f"w{n:03}", row=n) for n in range(100)], task_bytes=1 << 30, tasks_at_least=4)
    assert [len(t) for t in tasks] == [25] * 4


def test_a_waveform_larger_than_a_task_is_one_by_itself_and_empty_tasks_do_not_exist() -> None:
    laid = [whole("a", row=0), whole("big", size=100_000, row=1), whole("z", row=2)]
    tasks = assign_waveforms(laid, task_bytes=1000, tasks_at_least=1)
    assert [[a.waveform_id for a in t] for t in tasks] == [["a"], ["big"], ["z"]]


def test_what_waveforms_say_is_kept_once_and_bounds_a_task_however_little_they_bring() -> None:
    laid = [whole("big", size=100_000, row=100), *(whole(f"w{n:02}", size=2, row=n) for n in range(90))]
    table = StitchTable.of(laid)
    text = len(laid[0].pieces[0].meta or "")
    assert table.metas.get_total_buffer_size() < 10 * text
    tasks = deal_out(table, task_bytes=1 << 30, tasks_at_least=2, said_bytes=9 * text)
    assert sorted(n for task in tasks for n in task.tolist()) == list(range(91))
    assert all(len(task) <= 10 for task in tasks)
    assert table.chosen(tasks[0]).metas.to_pylist() == [laid[n].pieces[0].meta for n in tasks[0].tolist()]


def test_nothing_to_stitch_is_no_task() -> None:
    assert assign_waveforms([], task_bytes=1, tasks_at_least=8) == []


def test_only_whole_waveforms_are_assigned() -> None:
    with pytest.raises(ValueError, match="not whole"):
        assign_waveforms([replace(whole("w"), reason=Reason.OPEN)], task_bytes=1, tasks_at_least=1)


def test_a_day_begins_at_midnight_utc_also_before_1970() -> None:
    def starting(name: str, ns: int) -> Assembly:
        a = whole(name)
        return replace(a, metadata=a.metadata._replace(start_time_ns=ns))

    laid = [starting("before", -1), starting("epoch", 0), starting("last", DAY_NS - 1), starting("next", DAY_NS)]
    tasks = assign_waveforms(laid, task_bytes=1 << 30, tasks_at_least=1)
    assert [[a.waveform_id for a in t] for t in tasks] == [["before"], ["epoch", "last"], ["next"]]


def test_job_and_report_come_back_from_json_as_they_were() -> None:
    assert stitch_job_from_json(JOB.to_json()) == JOB
    report = StitchReport(JOB.plan_id, (RESULT, replace(RESULT, file=None)))
    assert stitch_report_from_json(report.to_json()) == report


def test_a_job_from_before_payload_could_lie_apart_has_it_in_its_files() -> None:
    before = json.loads(JOB.to_json())
    del before["payload"]
    assert stitch_job_from_json(json.dumps({**before, "format": 3})) == JOB


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", json.dumps({**json.loads(JOB.to_json()), "format": 1})])
def test_an_unknown_format_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="run the batch's reassemble step again"):
        stitch_job_from_json(text)


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(BadInput, match="a field of another kind: encoding"):
        stitch_job_from_json(JOB.to_json().replace('"small"', '"tiny"'))
