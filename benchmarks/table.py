"""The results as a Markdown document part, between markers in a page that people wrote. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.figures import pick, ratio
from benchmarks.goals import told_goals
from benchmarks.headline import LAYOUTS, RAW, SPARK, WHOLE

BEGIN = "<!-- figures: written by `make bench`, do not edit -->"
END = "<!-- end of figures -->"
SHORT_BEGIN = "<!-- in short: written by `make bench`, do not edit -->"
SHORT_END = "<!-- end of in short -->"
_NOT_ROWS = ("failed",)
_IN_SPARK = "Spark"


def replace_between(page: str, generated: str, *, begin: str = BEGIN, end: str = END) -> str:
    """The page with `generated` between its markers. Raises `ValueError` where it has none."""
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise ValueError(f"the page must have {begin!r} once, and {end!r} once after it")
    before, rest = page.split(begin)
    return f"{before}{begin}\n{generated.strip()}\n{end}{rest.split(end)[1]}"


def render(results: Mapping[str, Any]) -> str:
    """All tables: ratios against their goals first, then each part."""
    about = results.get("machine", {})
    lines = [
        f"{about.get('cores', '?')} cores, {about.get('memory_gib', '?')} GiB memory, {results.get('when', '?')}. "
        f"{results.get('mib', '?')} MiB a topic, medians of {results.get('rounds', '?')} interleaved rounds.",
        "",
        *_goals(results),
    ]
    parts = results.get("parts", {})
    lines += _of_other_days(parts, str(results.get("when", "")))
    for layout, title in LAYOUTS.items():
        rows = pick(parts, "side-by-side", layout)
        if rows:
            lines += ["", f"### Side by side, {title}", "", *_contest(rows)]
    steps = pick(parts, "side-by-side", "sticky", WHOLE, "steps")
    if steps:
        lines += ["", "### Where a warm batch's time goes (sticky, zstd-1)", "", *_steps(steps)]
    lines += _others(parts)
    return "\n".join(lines)


def _goals(results: Mapping[str, Any]) -> list[str]:
    rows = ["| what | measured | goal | reached |", "|---|---|---|---|"]
    for goal, value in told_goals(results):
        reached = {True: "yes", False: "**no**", None: ""}[None if value is None else goal.reached(value)]
        shown = "not measured" if value is None else goal.shown(value)
        rows.append(f"| {goal.title} | {shown} | {goal.words} | {reached} |")
    return rows


def _of_other_days(parts: Mapping[str, Any], when: str) -> list[str]:
    """What was not measured with the rest keeps its figures, and its day is told."""
    days = {name: str(part.get("when", when))[:10] for name, part in parts.items()}
    older = [f"{_title(name).lower()} ({day})" for name, day in days.items() if day != when[:10]]
    return ["", f"Measured on another day: {', '.join(older)}."] if older else []


def _contest(rows: Mapping[str, Any]) -> list[str]:
    raw = pick(rows, RAW, "mb_s")
    spark = pick(rows, SPARK, "mb_s")
    lines = ["| | MB/s | wall s | CPU s | x raw | x Spark's source | private MiB |", "|---|---|---|---|---|---|---|"]
    for name, row in rows.items():
        if name in _NOT_ROWS:
            continue
        peaks = ", ".join(f"{kind} {mib:.0f}" for kind, mib in row["peak_private_mib"].items())
        ratios = [_number(ratio(row["mb_s"], base)) for base in (raw, spark)]
        lines.append(
            f"| {name} | {row['mb_s']:.0f} | {row['wall_s']:.2f} | {row['cpu_s']:.2f} | {ratios[0]} | {ratios[1]} "
            f"| {peaks} |"
        )
    for name, why in rows.get("failed", {}).items():
        lines.append(f"| {name} | {'failed later' if name in rows else 'not measured'}: {_cell(why)} | | | | | |")
    return lines


def _steps(steps: Mapping[str, Any]) -> list[str]:
    lines = ["| step | wall s | CPU s |", "|---|---|---|"]
    order = [n for n in steps if n != _IN_SPARK]
    if _IN_SPARK in steps:
        order.insert(order.index("reassemble") + 1, _IN_SPARK)
    for name in order:
        row, title = steps[name], "of it in Spark" if name == _IN_SPARK else name
        lines.append(f"| {title} | {row['wall_s']:.2f} | {row['cpu_s']:.2f} |")
    return lines


def _others(parts: Mapping[str, Any]) -> list[str]:
    """The other parts: each brings rows of its own, or says why it has none."""
    lines: list[str] = []
    for name, part in parts.items():
        if "failed" in part and "table" not in part:
            lines += ["", f"### {_title(name)}", "", f"Not measured: {_cell(str(part['failed']))}"]
        elif "table" in part:
            head, *rows = part["table"]
            lines += ["", f"### {_title(name)}", "", _line(head), "|" + "---|" * len(head), *map(_line, rows)]
    return lines


def _title(name: str) -> str:
    return name.replace("-", " ").capitalize()


def _line(cells: list[Any]) -> str:
    return "| " + " | ".join(_cell(_number(c)) for c in cells) + " |"


def _number(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")[:300]
