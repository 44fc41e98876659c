"""Data Docs of one batch: a folder of pages that say what was expected, what was seen and what is held.

Great Expectations' own result page is written by the checkpoint's action, through `OfflineView`; the index is ours,
so that both can be read without the internet. Never shows more than ids, names and metrics.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from wavestitch.contracts.harmless import for_html
from wavestitch.contracts.verdict import Verdict
from wavestitch.html_pages import render_page, whole_page
from wavestitch.modes import make_folder, opener
from wavestitch.validation.offline_page import plain_body
from wavestitch.validation.outcome import Outcome

INDEX_PAGE = "index.html"
_SHOWN = 500
# Result pages lie in validations/SUITE/RUN/TIME/.
_WAY_HOME = Markup('<p><a href="../../../../index.html">Data Docs of this batch</a></p>\n')


class OfflineView:
    """How Great Expectations turns a rendered document into a page: its own way, then reduced to plain HTML."""

    def __init__(self, **_: Any) -> None:
        pass

    def render(self, document: Any, **_: Any) -> str:
        _escape_cells(document)
        page = plain_body(_page_view().render(document))
        return whole_page("Great Expectations: validation results", _WAY_HOME + page)


@cache
def _page_view() -> Any:
    """One for all batches of a process: each compiles its own templates, which takes longer than to validate."""
    from great_expectations.render.view import DefaultJinjaPageView  # noqa: PLC0415 - takes seconds

    return DefaultJinjaPageView()


def compile_templates() -> None:
    """All that a page can be made of, for the views of this process and those that are forked from it."""
    import great_expectations.render.renderer.site_builder  # noqa: F401, PLC0415

    for name in _page_view().env.list_templates():
        _page_view().env.get_template(name)


class NoView:
    """In place of Great Expectations' own index, which is empty without the internet; ours takes its name."""

    def __init__(self, **_: Any) -> None:
        pass

    def render(self, _document: Any, **_: Any) -> str:
        return whole_page("Data Docs", Markup(""))


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
    make_folder(docs_folder)
    text = render_page(
        "data_docs",
        title=f"Data Docs: {run_name}",
        run_name=run_name,
        verdict=verdict,
        outcomes=outcomes,
        held=list(verdict.failed.items())[:_SHOWN],
        pages=pages,
    )
    with open(docs_folder / INDEX_PAGE, "w", encoding="utf-8", opener=opener) as file:
        file.write(text)
    return f"{docs_folder.name}/{INDEX_PAGE}"


def _escape_cells(content: Any) -> None:
    """Makes text of the tables' cells text: ids and names are put on the page as they are, and one that reads like an
    element would take the rest of the page with it. Changes `content`, which is rendered once."""
    for part in content if isinstance(content, list | tuple) else vars(content).values():
        if isinstance(part, list | tuple) or hasattr(part, "content_block_type") or hasattr(part, "content_blocks"):
            _escape_cells(part)
    if getattr(content, "content_block_type", None) == "table":
        content.table = [[for_html(c) if isinstance(c, str) else c for c in row] for row in content.table]


def _view(kind: type) -> dict[str, str]:
    return {"module_name": kind.__module__, "class_name": kind.__name__}
