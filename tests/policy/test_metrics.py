"""grafana/wavestitch.json asks for what is exported, and docs/operations.md names all of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import ROOT
from wavestitch.contracts.metrics import METRICS

LABELS = {m.name: {"stream", *m.labels} for m in METRICS}
BOARD = json.loads((ROOT / "grafana" / "wavestitch.json").read_text(encoding="utf-8"))
_ROW = re.compile(r"^\| `(wavestitch_[a-z_]+)` \| (gauge|counter) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)
_WORDS = re.compile(r"\b(wavestitch_[a-z_]+)")


def queries(found: Any = BOARD) -> Iterator[str]:
    """Whatever the board asks Prometheus for, wherever it stands in it."""
    if isinstance(found, dict):
        for key, inside in found.items():
            if key in ("expr", "query", "definition") and isinstance(inside, str):
                yield inside
            else:
                yield from queries(inside)
    elif isinstance(found, list):
        for inside in found:
            yield from queries(inside)


QUERIES = [q for q in queries() if q != "prometheus"]


@pytest.mark.parametrize("query", QUERIES)
def test_each_query_of_the_board_names_one_metric_that_is_exported_and_labels_that_it_has(query: str) -> None:
    (name,) = _WORDS.findall(query)
    assert name in LABELS
    by = {label for said in re.findall(r"by \(([a-z_, ]+)\)", query) for label in said.split(", ")}
    chosen = set(re.findall(r"([a-z_]+) ?=~?", query)) | set(re.findall(r"label_values\(\w+, (\w+)\)", query))
    assert by | chosen <= LABELS[name], query
    assert ("increase(" in query) == name.endswith("_total"), "of a counter the growth, of a gauge the value"


@pytest.mark.parametrize("panel", BOARD["panels"], ids=lambda p: p["title"])
def test_a_legend_names_labels_that_its_query_leaves(panel: dict[str, Any]) -> None:
    assert panel["targets"]
    for target in panel["targets"]:
        left = set(re.findall(r"by \(([a-z_, ]+)\)", target["expr"])[0].split(", "))
        assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) == left


def test_whatever_is_exported_is_on_the_board_and_on_the_page() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    assert {name for q in QUERIES for name in _WORDS.findall(q)} == LABELS.keys()
    said = {name: (kind, labels.strip("`"), says) for name, kind, labels, says in _ROW.findall(page)}
    assert said == {m.name: (m.kind, ", ".join(m.labels), m.says) for m in METRICS}


def test_a_name_says_its_unit_and_a_counter_that_it_is_one() -> None:
    for metric in METRICS:
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        assert re.fullmatch(r"wavestitch(_[a-z]+)+", metric.name)
        assert not {"waveform", "waveform_id", "id", "source", "channel", "topic", "plan"} & set(metric.labels)
