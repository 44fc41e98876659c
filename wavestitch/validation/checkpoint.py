"""One run of a Great Expectations checkpoint over one data frame, in a context of its own that nothing shares.

Decides how it is run (every failing row named, no progress bars, no usage statistics). Never decides what a result
means. Importing this module imports Great Expectations: import it where it is used.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import great_expectations as gx
import pandas as pd
from great_expectations.checkpoint import UpdateDataDocsAction
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.exceptions import GreatExpectationsError

from wavestitch.contracts.errors import Terminal
from wavestitch.modes import make_folder, masked
from wavestitch.plain_files import refuse_links
from wavestitch.validation.docs import site_config
from wavestitch.validation.outcome import ID

# It says of each look which folders and settings it made for itself, in the log of whoever wants to know what it found.
logging.getLogger("great_expectations").setLevel(logging.WARNING)

_RESULT_FORMAT = {
    # SUMMARY would list 20 rows and drop the rest without a word.
    "result_format": "COMPLETE",
    "unexpected_index_column_names": [ID],
    "return_unexpected_index_query": False,
}
_SITE = "docs"


def run_checkpoint(frame: pd.DataFrame, suite: Sequence[Any], *, run_name: str, docs_folder: Path | None) -> list[Any]:
    """The validation results, one an expectation, in no particular order.

    Raises `Terminal` where Great Expectations itself fails, e.g. because it cannot store a result that it made.
    """
    context = gx.get_context(mode="ephemeral")
    context.enable_analytics(False)
    context.variables.progress_bars = {"globally": False}
    if docs_folder:
        # Pages have ids and extremes of waveforms.
        refuse_links(make_folder(docs_folder))
        context.add_data_docs_site(_SITE, site_config(docs_folder, run_name=run_name))
    definition = context.validation_definitions.add(
        gx.ValidationDefinition(
            name="rows",
            data=context.data_sources.add_pandas("batch")
            .add_dataframe_asset("waveforms")
            .add_batch_definition_whole_dataframe("rows"),
            suite=context.suites.add(gx.ExpectationSuite("waveforms", expectations=list(suite))),
        )
    )
    checkpoint = context.checkpoints.add(
        gx.Checkpoint(
            name="gate",
            validation_definitions=[definition],
            actions=[UpdateDataDocsAction(name="docs", site_names=[_SITE])] if docs_folder else [],
            result_format=_RESULT_FORMAT,
        )
    )
    try:
        with masked():
            ran = checkpoint.run(batch_parameters={"dataframe": frame}, run_id=RunIdentifier(run_name=run_name))
    except (GreatExpectationsError, TypeError, ValueError, KeyError, AttributeError) as error:
        why = first_line(error)
        raise Terminal(
            f"Great Expectations failed while it ran the suite: {why}; `wavestitch check` tries each expectation alone",
            why=why,
        ) from error
    return [result for validated in ran.run_results.values() for result in validated.results]


def crash_of(result: Any) -> str | None:
    """First line of the exception that kept an expectation from being evaluated. Its record has two shapes: one
    exception, or one for each metric."""
    info = result.exception_info or {}
    for entry in [info, *info.values()]:
        if isinstance(entry, dict) and entry.get("raised_exception"):
            return first_line(entry.get("exception_message"))
    return None


def first_line(text: object) -> str:
    lines = str(text).strip().splitlines()
    return lines[0] if lines else type(text).__name__
