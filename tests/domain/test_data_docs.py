"""The Data Docs of a batch: they say why, are readable offline, and run nothing; and a verdict survives its file."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.domain.gate_rows import Row, expect, row, table, validate
from wavestitch.contracts.verdict import Verdict, verdict_from_json
from wavestitch.html_pages import whole_page
from wavestitch.validation.offline_page import plain_body

with warnings.catch_warnings():
    # Importing it uses a module that Python has deprecated; running it must not warn.
    warnings.simplefilter("ignore", DeprecationWarning)
    from great_expectations.render import RenderedDocumentContent
    from great_expectations.render.view import DefaultJinjaPageView

pytestmark = pytest.mark.filterwarnings("error")

_LOADED = re.compile(r"""(?:src|href|action|data|srcset|poster)\s*=\s*["']?\s*(?:[a-z]+:)?//|@import|url\(""", re.I)


def hosts_in(html: str) -> list[str]:
    """Everything on a page that a browser would fetch, or that leads away from the folder."""
    return [m.group() for m in re.finditer(r"https?://", html)] + [m.group() for m in _LOADED.finditer(html)]


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Verdict]:
    folder = tmp_path_factory.mktemp("batch") / "docs"
    hostile = "<script src=//evil.example/x.js></script><img src=https://evil.example/y>"
    verdict = validate(
        table(row(0), row(1, nonfinite_count=5), row(2, waveform_id=f"w-2{hostile}", source=hostile)),
        expect("column_values_to_be_between", column="nonfinite_count", max_value=0),
        expect("column_values_to_match_regex", column="source", regex="^station-"),
        expect("column_max_to_be_between", "warning", column="sample_max", max_value=1),
        expect("table_row_count_to_be_between", min_value=100),
        expect("column_values_to_be_in_set", column="units", value_set=["mV"]),
        docs_folder=folder,
    )
    return folder, verdict


def test_docs_lie_beside_the_verdict_and_link_to_the_result_page(docs: tuple[Path, Verdict]) -> None:
    folder, verdict = docs
    assert verdict.docs == "docs/index.html"
    index = (folder.parent / verdict.docs).read_text()
    [result_page] = re.findall(r'href="(validations/[^"]+)"', index)
    assert (folder / result_page).is_file()
    [home] = re.findall(r'href="(\.\.[^"]+)"', (folder / result_page).read_text())
    assert (folder / result_page).parent.joinpath(home).resolve() == (folder / "index.html").resolve()


def test_the_index_says_why_a_row_failed_and_what_stopped_the_batch(docs: tuple[Path, Verdict]) -> None:
    index = (docs[0] / "index.html").read_text()
    for sentence in ["nonfinite_count is 5; allowed: max_value 0", "seen 3; allowed: min_value 100", "seen 9.0"]:
        assert sentence in index


def test_the_result_page_is_great_expectations_own(docs: tuple[Path, Verdict]) -> None:
    [result_page] = (docs[0] / "validations").rglob("*.html")
    text = result_page.read_text()
    for piece in ["Great Expectations Version", "plan-1", "w-1", "unexpected values found"]:
        assert piece in text


def test_docs_load_nothing_from_anywhere_and_run_nothing(docs: tuple[Path, Verdict]) -> None:
    files = [f for f in docs[0].rglob("*") if f.is_file()]
    assert {f.suffix for f in files} == {".html"}
    for file in files:
        text = file.read_text()
        body = text.partition("</head>")[2]
        assert not hosts_in(re.sub(r"&lt;.*?&gt;", "", text)), file
        assert "<script" not in body
        assert "default-src 'none'" in text


def test_a_page_stays_readable_whatever_producers_call_their_waveforms(docs: tuple[Path, Verdict]) -> None:
    index = (docs[0] / "index.html").read_text()
    assert "w-2&lt;script" in index
    assert "Results as Great Expectations shows them" in index
    [result_page] = (docs[0] / "validations").rglob("*.html")
    text = result_page.read_text()
    assert "w-2&lt;script" in text
    assert "values must belong to this set" in text, "what comes after a hostile name is on the page"


@pytest.mark.parametrize(
    "planted",
    [
        '<link rel="stylesheet" href="https://cdn.example/a.css">',
        "<script src=//cdn.example/a.js></script>",
        '<img src="//cdn.example/a.png">',
        "<style>@import 'x'; b { background: url(x) }</style>",
        '<a href="http://example.org">x</a>',
    ],
)
def test_the_search_for_hosts_finds_planted_ones_and_plain_pages_have_none(planted: str) -> None:
    assert hosts_in(planted)
    assert not hosts_in(whole_page("t", plain_body(f"<p>before</p>{planted}<p>after</p>")))
    assert plain_body(f"{planted}<p>after</p>").endswith("<p>after</p>")


def test_great_expectations_own_page_has_hosts_that_the_search_finds() -> None:
    document = RenderedDocumentContent(sections=[], renderer_type="SiteIndexPageRenderer")
    own = DefaultJinjaPageView().render(document)
    assert len(hosts_in(own)) > 10
    assert not hosts_in(plain_body(own))


@pytest.mark.parametrize(
    "spoil, visible",
    [(lambda rows: rows[:500], False), (lambda rows: [*rows[:-1], row(999, nonfinite_count=9)], True)],
)
def test_a_seeded_violation_is_seen_only_where_it_is(spoil: Callable[[list[Row]], list[Row]], visible: bool) -> None:
    rows = spoil([row(n) for n in range(1000)])
    found = validate(table(*rows), expect("column_values_to_be_between", column="nonfinite_count", max_value=0)).failed
    assert set(found) == ({"w-999"} if visible else set())


def test_a_real_verdict_survives_its_file(docs: tuple[Path, Verdict]) -> None:
    assert verdict_from_json(docs[1].to_json()) == docs[1]
