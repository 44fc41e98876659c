"""The pure parts of the benchmarks: medians, ratios, tables, comparison. Nothing here is timed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from benchmarks.figures import Cost, Run, compare, median_costs, rate, ratio, summarise
from benchmarks.goals import GOALS, Goal
from benchmarks.headline import headline
from benchmarks.in_short import digest_of, draw, five_lines
from benchmarks.parts.freshness import _summary
from benchmarks.parts.reader_memory import first_part
from benchmarks.side_by_side import LONG, _arguments, _parts
from benchmarks.side_by_side import PARTS as ALL_PARTS
from benchmarks.table import BEGIN, END, render, replace_between
from benchmarks.test_bed import Topic
from tests.builders.heads import make_row
from wavestitch.contracts.freshness import Waits
from wavestitch.contracts.quantities import Seconds


def run(wall: float, cpu: float = 1.0, **peaks: float) -> Run:
    return Run(Cost(wall, cpu), 100_000_000, peaks)


def row(mb_s: float, cpu_s: float = 1.0) -> dict[str, Any]:
    return {"mb_s": mb_s, "wall_s": 1.0, "cpu_s": cpu_s, "peak_private_mib": {"main": 10.0}}


PARTS: dict[str, Any] = {
    "side-by-side": {
        "sticky": {
            "raw, 1 process": row(500.0),
            "raw, 2 processes": row(600.0),
            "ours: read + land, 2 processes": row(480.0),
            "Spark's Kafka source, warm": row(100.0),
            "ours: end to end, warm": row(320.0),
            "ours: stitching": row(900.0, cpu_s=3.0),
            "pyarrow: stitching": row(900.0, cpu_s=2.0),
            "Kafka Connect's Iceberg sink": row(80.0),
            "failed": {"Parallel Consumer": "RuntimeError: no compiler | here", "raw, 1 process": "RuntimeError: gone"},
        },
        "device": {"ours: read + land, 2 processes": {**row(40.0, cpu_s=4.0), "records": 524_288}},
    },
    "freshness": {"p99_s": 9.5},
    "reader-memory": {"reader_private_mib": {"1": 120.0}, "table": [["GiB", "MiB"], ["1", 120]]},
    "growth": {"failed": "RuntimeError: no room"},
}


def test_a_median_is_of_the_rounds_and_a_peak_is_the_largest() -> None:
    found = summarise([run(1.0, 2.0, main=10), run(4.0, 8.0, main=30, jvm=5), run(2.0, 4.0, main=20)])
    assert (found["wall_s"], found["cpu_s"], found["mb_s"]) == (2.0, 4.0, 50.0)
    assert found["peak_private_mib"] == {"main": 30, "jvm": 5}
    assert found["wall_s_rounds"] == [1.0, 4.0, 2.0]


def test_no_run_is_no_figure() -> None:
    with pytest.raises(ValueError, match="no run"):
        summarise([])


def test_the_median_of_a_step_skips_rounds_without_it() -> None:
    found = median_costs([{"plan": Cost(1, 1), "Spark": Cost(5, 5)}, {"plan": Cost(3, 2)}])
    assert found == {"plan": {"wall_s": 2.0, "cpu_s": 1.5}, "Spark": {"wall_s": 5.0, "cpu_s": 5.0}}


def test_a_ratio_to_nothing_is_no_ratio() -> None:
    assert (ratio(3.0, 2.0), ratio(3.0, None), ratio(None, 2.0), ratio(1.0, 0.0)) == (1.5, None, None, None)
    assert rate(10_000_000, 2.0) == 5.0


def test_the_headline_takes_each_figure_from_its_row_and_none_where_it_is_missing() -> None:
    found = headline(PARTS)
    assert found["raw_consume_mb_s"] == 600.0
    assert found["read_and_land_mb_s"] == 480.0
    assert found["spark_kafka_job_mb_s"] == 100.0
    assert found["end_to_end_mb_s"] == 320.0
    assert found["reader_private_mib"] == {"1": 120.0}
    ratios = found["ratios"]
    assert ratios["read_and_land_of_raw"] == 0.8
    assert ratios["end_to_end_of_spark_sticky"] == 3.2
    assert ratios["stitching_cpu_of_pyarrow"] == 1.5
    assert ratios["end_to_end_of_sink_sticky"] == 4.0
    assert ratios["cpu_of_floor_sticky"] == round(1.0 / (1.0 + 2.0), 3)
    assert found["amounts"]["device_records_a_cpu_second"] == 131_072
    assert found["amounts"]["fresh_p99_s"] == 9.5
    assert ratios["end_to_end_of_spark_round_robin"] is None
    assert ratios["time_per_gib_largest_of_smallest"] is None


def test_nothing_measured_is_a_headline_of_nothing() -> None:
    found = headline({})
    assert found["raw_consume_mb_s"] is None
    assert set(found["ratios"].values()) == {None}
    assert set(found["amounts"].values()) == {None}


def test_a_comparison_says_how_far_each_ratio_moved_and_leaves_out_what_one_side_lacks() -> None:
    lines = compare({"a": 1.1, "b": None, "c": 2.0}, {"a": 1.0, "b": 3.0, "d": 1.0})
    assert len(lines) == 1
    assert lines[0].startswith("a ")
    assert lines[0].endswith("+10 %")


def test_the_tables_have_every_row_every_failure_and_the_goals() -> None:
    text = render({**headline(PARTS), "parts": PARTS, "rounds": 3, "mib": 1024, "machine": {"cores": 2}})
    assert "| read + land (2 processes) / raw loop (2 processes) | 0.80 | ≥ 0.8 | yes |" in text
    assert "| a waveform's last chunk acknowledged → its row, at 20 MB/s, p99 | 9.50 s | ≤ 15 s | yes |" in text
    assert "that writes bytes | 3.20 | ≥ 5 | **no** |" in text
    assert "| plan + publish on a grown table / on a new one | not measured | ≤ 1.5 |  |" in text
    assert "CPU of the same | not measured" not in text
    assert "| ours: end to end, warm | 320 | 1.00 | 1.00 | 0.53 | 3.20 | main 10 |" in text
    assert "not measured: RuntimeError: no compiler \\| here" in text
    assert "| raw, 1 process | 500 |" in text
    assert "| raw, 1 process | failed later: RuntimeError: gone |" in text
    assert "### Reader memory\n\n| GiB | MiB |\n|---|---|\n| 1 | 120 |" in text
    assert "### Growth\n\nNot measured: RuntimeError: no room" in text


def test_a_part_of_another_day_keeps_its_figures_and_its_day_is_told() -> None:
    parts = {"junk": {"when": "2026-11-22T08:18:18", "table": [["a"], [1]]}, "growth": {"when": "2026-11-23T08:00:00"}}
    text = render({"parts": parts, "when": "2026-11-23T09:00:00"})
    assert "Measured on another day: junk (2026-11-22)." in text


def test_every_figure_with_a_goal_is_one_that_is_measured_and_the_other_way_round() -> None:
    found = headline({})
    known = {*found["ratios"], *found["amounts"]}
    assert set(GOALS) <= known
    untold = {name for name in known - set(GOALS) if not name.startswith("end_to_end_of_")}
    assert untold == set()


@pytest.mark.parametrize(
    ("goal", "value", "words", "shown", "reached"),
    [
        (Goal("x", least=5), 4.99, "≥ 5", "4.99", False),
        (Goal("x", most=1.2), 1.2, "≤ 1.2", "1.20", True),
        (Goal("x", least=0.85, most=1.15), 1.2, "0.85 to 1.15", "1.20", False),
        (Goal("x", least=100_000, unit="records/s"), 112_345, "≥ 100,000 records/s", "112,345 records/s", True),
        (Goal("x", most=15, unit="s"), 15.04, "≤ 15 s", "15.0 s", False),
        (Goal("x"), 3.0, "", "3.00", None),
    ],
)
def test_a_goal_says_what_it_wants_and_whether_a_figure_reaches_it(
    goal: Goal, value: float, words: str, shown: str, reached: bool | None
) -> None:
    assert (goal.words, goal.shown(value), goal.reached(value)) == (words, shown, reached)


def test_the_first_lines_and_the_chart_show_what_was_measured_and_say_what_was_not() -> None:
    results = {**headline(PARTS), "parts": copy.deepcopy(PARTS)}
    results["parts"]["side-by-side"]["sticky"]["ours: end to end, warm"]["bytes"] = 1 << 30
    lines = five_lines(results).split("\n")
    assert len(lines) == 5
    assert "a GiB of chunks takes 1.0 s" in lines[0]
    assert lines[1].endswith("4.0 times as fast as Kafka Connect's Iceberg sink, which does not stitch.")
    assert "not measured yet" in lines[2]
    assert "99 of 100: 9.5 s" in lines[3]
    assert f"figures {digest_of(results)}" in draw(results).decode()
    assert five_lines({}).count("not measured yet") == 7
    with pytest.raises(ValueError, match="nothing was measured"):
        draw({})


def test_parts_are_all_or_the_usual_ones_or_those_that_are_named() -> None:
    usual = _parts(_arguments([]).parts)
    assert set(usual) == set(ALL_PARTS) - set(LONG)
    assert _parts("all") == list(ALL_PARTS)
    assert _arguments(["--parts", "junk,freshness", "--minutes", "60"]).minutes == 60
    with pytest.raises(SystemExit):
        _arguments(["--parts", "sideways"])


def test_a_waveform_that_did_not_come_or_came_before_it_was_sent_is_no_figure() -> None:
    sent = {"bytes": 20_000_000, "seconds": 1.0}
    measured = [Waits(1, 0, Seconds(15), 2.5, 2.5, 2.5), Waits(1, 0, Seconds(15), 0.5, 0.5, 0.5)]
    own = [make_row(waits=w, seconds={"read": s}, committed_ms=9000 - 7000 * s) for s, w in enumerate(measured)]
    times = {"a": 1.0, "b": 2.0}
    found = _summary(times, {"a": 4.0, "b": 3.0, "x": 9.0}, own, sent, 3, 1.5, lambda _: None)
    assert found["own"] == {"p99_at_most_s": 2.5, "longest_s": 2.5, "late": 0, "alarm_agrees": True}
    assert found["a_batch"] == {"every_s": 7.0, "steps_s": {"read": 0.5}}
    assert _summary(times, {"a": 4.0, "b": 30.0}, own, sent, 3, 1.5, lambda _: None)["own"]["alarm_agrees"] is False
    assert (found["waveforms"], found["mb_s"], found["longest_s"], found["p50_s"]) == (2, 20.0, 3.0, 2.0)
    with pytest.raises(RuntimeError, match="1 of 2 waveforms did not come"):
        _summary(times, {"a": 4.0}, own, sent, 3, 1.5, lambda _: None)
    with pytest.raises(RuntimeError, match="the batches measured 1 waveforms, 2 were sent"):
        _summary(times, {"a": 4.0, "b": 3.0}, own[:1], sent, 3, 1.5, lambda _: None)
    with pytest.raises(RuntimeError, match="before it was acknowledged"):
        _summary({"a": 1.0}, {"a": 0.5}, own, sent, 3, 1.5, lambda _: None)


def test_only_what_stands_between_the_markers_is_rewritten() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    once = replace_between(page, "new\n")
    assert once == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    assert replace_between(once, "new") == once


@pytest.mark.parametrize("page", ["nothing", BEGIN, f"{END} {BEGIN}", f"{BEGIN}{BEGIN}{END}"])
def test_a_page_without_its_markers_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="must have"):
        replace_between(page, "new")


def test_the_first_part_of_a_topic_is_whole_waveforms_in_equal_parts_of_all_partitions() -> None:
    topic = Topic("t", starts=[4, 4], ends=[4 + 64, 4 + 64], prelude=8, bytes=8 << 30, waveforms=8, digests="")
    part = first_part(topic, 2)
    assert (part.starts, part.ends) == ([4, 4], [4 + 16, 4 + 16])
    assert (part.bytes, part.waveforms, part.records) == (2 << 30, 2, 32)
    assert first_part(topic, 8).ends == topic.ends


def test_more_than_a_topic_has_is_no_part_of_it() -> None:
    topic = Topic("t", starts=[0, 0], ends=[64, 64], prelude=0, bytes=8 << 30, waveforms=8, digests="")
    with pytest.raises(RuntimeError, match="does not have 16 GiB"):
        first_part(topic, 16)
