"""docs/scale.md is what its script makes of the committed figures, and these give back what was measured."""

from __future__ import annotations

import pytest

from benchmarks.scale.__main__ import PAGE, PICTURE, committed
from benchmarks.scale.chains import TOLERANCE
from benchmarks.scale.page import BEGIN, END, Findings, render, replace_between, work_out
from benchmarks.scale.picture import digest_of, draw


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
    assert len(found.compared) >= 4
    assert sum(row.anchor for row in found.compared) == 1
    assert all(abs(off) <= TOLERANCE == 0.15 for row in found.compared for off in row.off)


def test_what_people_wrote_of_one_stream_and_of_many_is_what_the_tables_say(found: Findings) -> None:
    assert all(rate < 1e9 for chain in found.chains for rate in chain.rates.values()), (
        "One stream does not reach 1 GB/s"
    )
    streams = {(taken.form.chunk >> 10, int(taken.rate / 1e9)): taken.streams for taken in found.taken}
    assert streams[64, 1] * 2 < streams[1, 1]  # far fewer with large chunks
    assert streams[64, 10] * 2 < streams[1, 10]
    parsing = found.found.parsing
    assert parsing["slowest_file_s"] < 30
    assert 1 < parsing["cpu_s"] / 30 < 2
    assert parsing["cpu_s"] / 3600 < 0.011


@pytest.mark.parametrize("page", ["", BEGIN, f"{END} {BEGIN}"])
def test_a_page_without_its_markers_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="must have"):
        replace_between(page, "x")
