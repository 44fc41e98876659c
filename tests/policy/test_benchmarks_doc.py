"""docs/benchmarks.md opens with what its script makes of the committed figures, and its tables are theirs."""

from __future__ import annotations

from benchmarks.in_short import digest_of
from benchmarks.page import CHART, PAGE, committed, page_of


def test_lines_and_tables_are_what_the_script_prints() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_of(page, committed()), "run `python -m benchmarks.page`, and look at what it changes"


def test_the_chart_is_of_the_same_figures_and_stands_first() -> None:
    assert f"figures {digest_of(committed())}" in CHART.read_text(), "run `python -m benchmarks.page`"
    assert PAGE.read_text(encoding="utf-8").split("\n")[2].endswith(f"](images/{CHART.name})")
