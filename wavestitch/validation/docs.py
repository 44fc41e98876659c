"""Data Docs of one batch: a folder of pages that say what was expected, what was seen and what is held.

Great Expectations' own result page is written by the checkpoint's action, through `OfflineView`; the index is ours,
so that both can be read without the internet. Never shows more than ids, names and metrics.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from wavestitch.contracts.verdict import Verdict
from wavestitch.validation.offline_page import page, plain_body
from wavestitch.validation.outcome import Outcome

INDEX_PAGE = "index.html"
_SHOWN = 500
# Result pages lie in validations/SUITE/RUN/TIME/.
_WAY_HOME = f'<p><a href="../../../../{INDEX_PAGE}">Data Docs of this batch</a></p>\n'


class OfflineView:
    """How Great Expectations turns a rendered document into a page: its own way, then reduced to plain HTML."""

    def __init__(self, **_: Any) -> None:
        from great_expectations.render.view import DefaultJinjaPageView  # noqa: PLC0415 - takes seconds

        self._view = DefaultJinjaPageView()

    def render(self, document: Any, **_: Any) -> str:
        _escape_cells(document)
        return page("Great Expectations: validation results", _WAY_HOME + plain_body(self._view.render(document)))


class NoView:
    """In place of Great Expectations' own index, which is empty without the internet; ours takes its name."""

    def __init__(self, **_: Any) -> None:
        pass

    def render(self, _document: Any, **_: Any) -> str:
        return page("Data Docs", "")


def site_config(docs_folder: Path, *, run_name: str) -> dict[str, Any]:
    """The Data Docs site below `docs_folder`: result pages only."""
    return {
        "class_name": "SiteBuilder",
        "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(docs_folder.absolute())},
        "show_how_to_buttons": False,
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder", "view": _view(NoView)},
        "site_section_builders": {
            "expectations": "none",
            "profiling": "none",
            "validations": {
                "class_name": "DefaultSiteSectionBuilder",
                "renderer": {"class_name": "ValidationResultsPageRenderer"},
                "view": _view(OfflineView),
                # Without it a run whose name has "profiling" in it gets no page.
                "run_name_filter": {"includes": run_name},
            },
        },
    }


def write_index(docs_folder: Path, verdict: Verdict, outcomes: Sequence[Outcome], *, run_name: str) -> str:
    """Writes the index over what the checkpoint left; returns its path relative to the folder above `docs_folder`."""
    # Pictures, fonts and scripts that no page here uses: 4 MB a batch.
    shutil.rmtree(docs_folder / "static", ignore_errors=True)
    pages = sorted(p.relative_to(docs_folder).as_posix() for p in (docs_folder / "validations").rglob("*.html"))
    docs_folder.mkdir(mode=0o750, parents=True, exist_ok=True)
    body = "\n".join(_index(verdict, outcomes, pages, run_name=run_name))
    (docs_folder / INDEX_PAGE).write_text(page(f"Data Docs: {run_name}", body), encoding="utf-8")
    return f"{docs_folder.name}/{INDEX_PAGE}"


def _index(verdict: Verdict, outcomes: Sequence[Outcome], pages: Sequence[str], *, run_name: str) -> Iterator[str]:
    yield f"<h1>Data Docs of batch <code>{escape(run_name)}</code></h1>"
    yield f"<p>{_summary(verdict)}</p>"
    yield from _list("The batch is stopped by", verdict.closed)
    yield from _list("Reported, stops nothing", verdict.reported)
    yield "<h2>Expectations</h2><table><thead><tr><th>Status</th><th>Severity</th><th>Expectation</th>"
    yield "<th>Seen; allowed</th></tr></thead><tbody>"
    for outcome in outcomes:
        status = "passed" if outcome.met else "failed" if outcome.expectation.severity == "critical" else "reported"
        yield f'<tr><td class="short {status}">{status}</td><td class="short">{outcome.expectation.severity}</td>'
        yield f"<td>{escape(outcome.subject)}</td><td>{escape(outcome.seen + outcome.allowed)}</td></tr>"
    yield "</tbody></table>"
    if verdict.failed:
        yield "<h2>Waveforms to hold</h2><table><thead><tr><th>Waveform</th><th>Why</th></tr></thead><tbody>"
        for waveform_id, why in list(verdict.failed.items())[:_SHOWN]:
            reasons = "".join(f"<li>{escape(sentence)}</li>" for sentence in why)
            yield f"<tr><td><code>{escape(waveform_id)}</code></td><td><ul>{reasons}</ul></td></tr>"
        yield "</tbody></table>"
        if len(verdict.failed) > _SHOWN:
            yield f"<p>{len(verdict.failed) - _SHOWN} more; the batch's verdict lists all.</p>"
    yield "<h2>Results as Great Expectations shows them</h2><ul>"
    yield from (f'<li><a href="{quote(p)}">{escape(p)}</a></li>' for p in pages)
    yield "</ul>"


def _summary(verdict: Verdict) -> str:
    state = '<span class="failed">stopped</span>' if verdict.closed else '<span class="passed">open</span>'
    return (
        f"Gate: {state}. {verdict.rows} waveforms, {verdict.expectations} expectations, {len(verdict.failed)} "
        f"waveforms to hold, {len(verdict.reported)} findings only reported."
    )


def _list(title: str, sentences: Sequence[str]) -> Iterator[str]:
    if sentences:
        yield f"<h2>{title}</h2><ul>{''.join(f'<li>{escape(s)}</li>' for s in sentences)}</ul>"


def _escape_cells(content: Any) -> None:
    """Makes text of the tables' cells text: ids and names are put on the page as they are, and one that reads like an
    element would take the rest of the page with it. Changes `content`, which is rendered once."""
    for part in content if isinstance(content, list | tuple) else vars(content).values():
        if isinstance(part, list | tuple) or hasattr(part, "content_block_type") or hasattr(part, "content_blocks"):
            _escape_cells(part)
    if getattr(content, "content_block_type", None) == "table":
        content.table = [[escape(c) if isinstance(c, str) else c for c in row] for row in content.table]


def _view(kind: type) -> dict[str, str]:
    return {"module_name": kind.__module__, "class_name": kind.__name__}
