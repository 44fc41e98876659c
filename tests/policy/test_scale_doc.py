"""docs/scale.md is what its script makes of the committed figures, and these give back what was measured."""

from __future__ import annotations

import re

import pytest

from benchmarks.figures import GIB
from benchmarks.scale.__main__ import PAGE, PICTURE, ROOT, committed
from benchmarks.scale.chains import TOLERANCE
from benchmarks.scale.constants import SUBMIT
from benchmarks.scale.page import BEGIN, END, Findings, render, replace_between, work_out
from benchmarks.scale.picture import digest_of, draw

DECISIONS = ROOT / "docs" / "decisions"


@pytest.fixture(scope="module")
def found() -> Findings:
    return work_out(committed())


def test_the_page_is_what_the_script_prints(found: Findings) -> None:
    page = PAGE.read_text()
    assert page == replace_between(page, render(found)), "run `make scale`, and look at what it changes"


def test_the_picture_is_of_the_same_figures(found: Findings) -> None:
    figures = f"figures {digest_of(found)}"
    assert figures in PICTURE.read_text(), "run `make scale`"
    assert figures in draw(found).decode()


def test_what_was_measured_comes_out_before_anything_is_said_of_more(found: Findings) -> None:
    held = [row for row in found.compared if row.held]
    assert len(held) >= 2
    assert sum(row.fitted for row in found.compared) == 2
    assert not any(row.fitted for row in held)
    assert all(abs(off) <= TOLERANCE == 0.15 for row in held for off in row.off)


def test_what_people_wrote_of_one_stream_and_of_many_is_what_the_tables_say(found: Findings) -> None:
    fastest = {
        (chain.name, chain.chunk >> 10, width): rate for chain in found.chains for width, rate in chain.rates.items()
    }
    reached = {key for key, rate in fastest.items() if rate >= 1e9}
    assert reached <= {("64 GiB, 16,000,000 records", 64, (64, 64))}, "One stream does not reach 1 GB/s, by defaults"
    assert max(fastest.values()) < 1.2e9, "at the very edge"
    streams = {(taken.form.chunk >> 10, int(taken.rate / 1e9)): taken.streams for taken in found.taken}
    assert streams[64, 1] * 2 < streams[1, 1]  # far fewer with large chunks
    assert streams[64, 10] * 2 < streams[1, 10]
    parsing = found.found.parsing
    assert parsing["slowest_file_s"] < 30
    assert 1 < parsing["cpu_s"] / 30 < 2
    assert parsing["cpu_s"] / 3600 < 0.011


def test_what_people_wrote_of_200_streams_is_what_the_pool_of_spark_allows(found: Findings) -> None:
    of_one = [s for s in found.slots if s.way == SUBMIT and s.sparks == 1]
    assert {s.slots for s in of_one} == {8, 32}
    assert not any(s.in_time for s in of_one), "too many for a pool of one Spark, however many tasks there may be"
    for s in found.slots:
        busy = found.found.in_airflow[s.way]["stitch"] * 200
        assert s.last >= busy / min(s.sparks, s.slots)
        assert s.in_time is (s.last < 300)
    for named in ("`most_streams`", "`[core] dagbag_import_timeout`", "dag_file_processor_timeout`"):
        assert named in render(found)


def test_what_a_store_takes_more_is_what_was_measured_of_one_and_is_said_to_be_in_no_table() -> None:
    measured = re.sub(r"\s+", " ", (DECISIONS / "0043-payload-lies-apart-in-a-store.md").read_text())
    land, stitch = (
        re.search(rf"{step}.{{0,80}}?\D(\d\.\d) s more", measured) for step in ("landing takes", "stitching")
    )
    assert land is not None
    assert stitch is not None
    said = re.sub(r"\s+", " ", PAGE.read_text().split(BEGIN)[0])
    assert f"landing takes {land[1]} CPU s more a GiB and stitching {stitch[1]} s more" in said
    cores = (float(land[1]) + float(stitch[1])) * 1e9 / GIB
    assert f"1 GB/s some {cores:.1f} cores beside those of the table" in said


@pytest.mark.parametrize("page", ["", BEGIN, f"{END} {BEGIN}"])
def test_a_page_without_its_markers_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="must have"):
        replace_between(page, "x")
