"""Write docs/benchmarks.md and its chart from the committed figures: `python -m benchmarks.page`; measures nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.headline import headline
from benchmarks.in_short import draw, five_lines
from benchmarks.results_file import RESULTS
from benchmarks.table import SHORT_BEGIN, SHORT_END, render, replace_between

ROOT = Path(__file__).resolve().parents[1]
FIGURES = RESULTS / "latest.json"
PAGE = ROOT / "docs" / "benchmarks.md"
CHART = ROOT / "docs" / "images" / "benchmarks.svg"


def committed() -> dict[str, Any]:
    """The figures, with what is reckoned from them by the goals of today."""
    found: dict[str, Any] = json.loads(FIGURES.read_text())
    return {**found, **headline(found["parts"])}


def page_of(page: str, results: Mapping[str, Any]) -> str:
    """The page with what is generated in it."""
    page = replace_between(page, five_lines(results), begin=SHORT_BEGIN, end=SHORT_END)
    return replace_between(page, render(results))


def write_page() -> None:
    results = committed()
    PAGE.write_text(page_of(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
    CHART.write_bytes(draw(results))


if __name__ == "__main__":
    write_page()
