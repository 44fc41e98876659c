"""The gate between reassembly and publish: a stream's expectations over one slim row per waveform.

Decides what a failed expectation means: its rows are held (row-level, critical), the batch stops (whole batch,
critical), or it is reported. Never publishes or holds anything itself. An expectation that crashed could not be judged:
it closes the gate where it is critical, so that an operator decides, and is reported where it is not. Great
Expectations is imported only when there is something to validate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from wavestitch.contracts.errors import BadInput, Terminal
from wavestitch.contracts.expectation import SHAPES
from wavestitch.contracts.rows import STITCHED
from wavestitch.contracts.stream import Expectation
from wavestitch.contracts.verdict import Verdict
from wavestitch.garbage_collection import collection_paused
from wavestitch.validation import computed_columns
from wavestitch.validation.outcome import ID, Outcome, read_outcome, unjudged
from wavestitch.validation.spared_imports import sparing_imports

if TYPE_CHECKING:
    import pandas as pd


def load_gate() -> None:
    """Import what validating needs, ahead of it: this takes seconds."""
    with sparing_imports(), collection_paused():
        import wavestitch.validation.checkpoint  # noqa: PLC0415
        import wavestitch.validation.suite  # noqa: F401, PLC0415


def load_pages() -> None:
    """The same of what its pages take: they are made of templates, which are compiled at the first use."""
    load_gate()
    from wavestitch.validation.docs import compile_templates  # noqa: PLC0415

    compile_templates()


def validate_rows(
    rows: pa.Table, expectations: Sequence[Expectation], *, run_name: str, docs_folder: Path | None
) -> Verdict:
    """The verdict over `rows` (schema `STITCHED`, `reason` null everywhere); writes Data Docs into `docs_folder`.

    A null passes every row-level expectation but `expect_column_values_to_not_be_null`. Raises `BadInput` for rows or
    expectations that cannot be used.
    """
    _check_rows(rows)
    if not rows.num_rows or not expectations:
        return Verdict({}, (), (), rows=rows.num_rows, expectations=0)
    outcomes = _evaluate(rows, expectations, run_name=run_name, docs_folder=docs_folder)
    verdict = judge(outcomes, rows=rows.num_rows)
    if docs_folder is None:
        return verdict
    from wavestitch.validation.docs import write_index  # noqa: PLC0415

    return replace(verdict, docs=write_index(docs_folder, verdict, outcomes, run_name=run_name))


def check_expectations(expectations: Sequence[Expectation]) -> list[str]:
    """What is wrong with a stream's expectations, as sentences; none where they can be used.

    Needs no data: they are tried on made-up batches. What a stream may say at all was decided when it was read.
    """
    found: dict[int, str] = {}
    for rows in made_up_batches() if expectations else ():
        try:
            crashes = [o.crash for o in _evaluate(rows, expectations, run_name="check", docs_folder=None)]
        except BadInput:  # one of them, or several: each alone
            crashes = [_refusal(rows, e) for e in expectations]
        for place, (expectation, crash) in enumerate(zip(expectations, crashes, strict=True)):
            if crash:
                said = f"{expectation.type} cannot be evaluated: {crash}"
                found.setdefault(place, f"'expectations.{place}' is not valid: {said}")
    return [found[place] for place in sorted(found)]


def judge(outcomes: Iterable[Outcome], *, rows: int) -> Verdict:
    """What the outcomes mean. Pure."""
    failed: dict[str, list[str]] = {}
    closed, reported = [], []
    count = 0
    for outcome in outcomes:
        count += 1
        if outcome.met:
            continue
        severity = outcome.expectation.severity
        if severity != "critical":
            reported.append(f"{severity}: {outcome.batch_sentence()}")
        elif outcome.rows:
            for waveform_id in outcome.rows:
                failed.setdefault(waveform_id, []).append(outcome.row_sentence(waveform_id))
        else:
            # Also where a row-level expectation names no row: what to hold is not known, so nothing may pass.
            closed.append(outcome.batch_sentence())
    return Verdict({w: tuple(why) for w, why in failed.items()}, tuple(closed), tuple(reported), rows, count)


def made_up_rows() -> pa.Table:
    """Three rows as a stream could have them; the last has no finite sample, hence no extremes."""
    start = datetime(2024, 5, 1, tzinfo=UTC)
    row: dict[str, Any] = {
        "file": "rows.parquet",
        "day": start.date(),
        "byte_length": 2000,
        "channel": "Z",
        "start_time": start,
        "duration_s": 2.0,
        "sampling_rate_hz": 500.0,
        "sample_format": "i16le",
        "units": "mV",
        "sample_count": 1000,
        "nonfinite_count": 0,
        "chunk_count": 2,
    }
    extremes = {"sample_min": -9.0, "sample_max": 9.0, "physical_min": -0.9, "physical_max": 0.9}
    return pa.Table.from_pylist(
        [
            {**row, **(extremes if n < 2 else {}), "waveform_id": f"w-{n}", "row": n, "source": f"s-{n}"}
            for n in range(3)
        ],
        schema=STITCHED,
    )


def _refusal(rows: pa.Table, expectation: Expectation) -> str:
    """Why an expectation cannot be used on these rows; empty where it can."""
    try:
        [outcome] = _evaluate(rows, [expectation], run_name="check", docs_folder=None)
    except BadInput as error:
        return error.message
    return outcome.crash


def made_up_batches() -> list[pa.Table]:
    """The same, and what producers can make of them: one row, nothing finite at all, equal rows, infinite extremes."""
    rows = made_up_rows()
    infinite = rows
    for name in ("physical_min", "physical_max"):
        ends = pa.array([-math.inf, math.inf, math.inf], rows[name].type)
        infinite = infinite.set_column(rows.schema.get_field_index(name), rows.schema.field(name), ends)
    return [rows, rows.slice(0, 1), rows.slice(2), rows.slice(0, 2), infinite]


def _evaluate(
    rows: pa.Table,
    expectations: Sequence[Expectation],
    *,
    run_name: str,
    docs_folder: Path | None,
    until: float | None = None,
) -> list[Outcome]:
    """The outcomes in the order of `expectations`. Where Great Expectations fails on them together, each is asked
    alone: what one of them does is not taken for the others'. `until`: for all patterns, on the monotonic clock."""
    until = time.monotonic() + computed_columns.ALL_PATTERNS_SECONDS if until is None else until
    try:
        return _evaluate_suite(rows, expectations, run_name=run_name, docs_folder=docs_folder, until=until)
    except BadInput:
        raise
    except Terminal as error:
        if len(expectations) == 1:
            return [unjudged(expectations[0], str(error.facts.get("why", error.message)))]
    alone = [_evaluate(rows, [e], run_name=run_name, docs_folder=None, until=until) for e in expectations]
    return [outcome for found in alone for outcome in found]


def _evaluate_suite(
    rows: pa.Table, expectations: Sequence[Expectation], *, run_name: str, docs_folder: Path | None, until: float
) -> list[Outcome]:
    load_gate()
    from wavestitch.validation.checkpoint import crash_of, run_checkpoint  # noqa: PLC0415 - takes seconds, see above
    from wavestitch.validation.suite import INDEX, build_suite  # noqa: PLC0415

    rows = _without_nan(rows)
    suite = build_suite(expectations, rows, until=until)
    frame = _frame(rows.select([name for name in rows.column_names if name in suite.looked_at | {ID}]), suite.columns)
    results = run_checkpoint(frame, suite.objects, run_name=run_name, docs_folder=docs_folder)
    by_place = {r.expectation_config.meta[INDEX]: r for r in results}
    return [
        unjudged(e, crash)
        if (crash := crash_of(by_place[place]))
        else read_outcome(
            e,
            row_level=SHAPES[e.type].row_level,
            success=by_place[place].success,
            result=_as_seen(by_place[place].result, rows, suite.stands_for),
        )
        for place, e in enumerate(expectations)
    ]


def _check_rows(rows: pa.Table) -> None:
    if not rows.schema.equals(STITCHED):
        odd = sorted({f"{f.name} {f.type}" for f in set(rows.schema) ^ set(STITCHED)})
        raise BadInput(f"the gate's rows do not have the columns of STITCHED; differing: {', '.join(odd) or 'order'}")
    if rows["reason"].null_count != rows.num_rows:
        raise BadInput("the gate's rows hold waveforms with a reason; only stitched ones are validated")


def _as_seen(result: dict[str, Any], rows: pa.Table, stands_for: Mapping[str, str]) -> dict[str, Any]:
    """`result` with the value of the rows' own column where a computed one was looked at."""
    listed = result.get("unexpected_index_list") or []
    computed = next((name for name in stands_for if listed and name in listed[0]), None)
    if computed is None:
        return result
    column = stands_for[computed]
    seen = dict(zip(rows[ID].to_pylist(), rows[column].to_pylist(), strict=True))
    return {**result, "unexpected_index_list": [{column: seen[e[ID]], ID: e[ID]} for e in listed]}


def _without_nan(rows: pa.Table) -> pa.Table:
    """A NaN becomes null: whether Great Expectations takes it for a value depends on the engine."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_floating(field.type):
            column = rows.column(place)
            rows = rows.set_column(place, field, pc.if_else(pc.is_nan(column), pa.scalar(None, field.type), column))
    return rows


def _frame(rows: pa.Table, computed: Mapping[str, Any]) -> pd.DataFrame:
    """Arrow-backed columns: NumPy ones would turn nulls into NaN and integers with nulls into floats. Only what is
    looked at: Great Expectations takes a fingerprint of every value that it is given, which is half of its work."""
    import pandas as pd  # noqa: PLC0415

    for name, column in computed.items():
        rows = rows.append_column(name, column)
    return rows.to_pandas(types_mapper=pd.ArrowDtype)
