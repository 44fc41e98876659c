"""docs/settings.md and docs/streams.md name every setting there is, and the defaults that the code has."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
from pydantic import BaseModel

from tests.builders.streams import make_stream
from tests.conftest import ROOT
from wavestitch.contracts.stream import Limits, Reading, Stream
from wavestitch.settings import Settings
from wavestitch.settings_sections import Kafka, Maintain, MaintainLimits, Metrics, Notify, Spark, Tables, Verify

_TOML = re.search(r"```toml\n(.*?)```", (ROOT / "docs" / "settings.md").read_text(), re.DOTALL)
WRITTEN: dict[str, Any] = tomllib.loads(_TOML[1] if _TOML else "")
_ROW = re.compile(r"^\| (`[a-z_.]+`(?:, `[a-z_.]+`)*) \|([^|]*)\|", re.MULTILINE)
_PAGE = (ROOT / "docs" / "streams.md").read_text().partition("\n## ")[0]
DEFAULTS = {
    key: said
    for names, shown in _ROW.findall(_PAGE)
    for key, said in zip(names.replace("`", "").split(", "), shown.strip().split(", ") * 2, strict=False)
}


def keys(model: type[BaseModel], within: str = "") -> set[str]:
    return {f"{within}{name}" for name in model.model_fields}


def test_the_file_of_the_page_is_one() -> None:
    assert Settings.model_validate(WRITTEN)


@pytest.mark.parametrize(
    ("section", "model"),
    [
        ("", Settings),
        ("kafka", Kafka),
        ("tables", Tables),
        ("spark", Spark),
        ("verify", Verify),
        ("maintain", Maintain),
        ("notify", Notify),
        ("metrics", Metrics),
    ],
)
def test_every_setting_stands_in_the_file_of_the_page(section: str, model: type[BaseModel]) -> None:
    written = WRITTEN[section] if section else WRITTEN
    assert keys(model) - written.keys() <= {"streams"}, "of [maintain], the page names [maintain.streams.NAME]"


def test_how_long_things_stay_by_default_is_what_the_page_says() -> None:
    assert MaintainLimits.model_validate(WRITTEN["maintain"]) == MaintainLimits()
    known = Tables(uri="sqlite:////x", warehouse="file:///w")
    said = Tables.model_validate(WRITTEN["tables"])
    assert (said.connect_timeout, said.answer_timeout) == (known.connect_timeout, known.answer_timeout)


def test_every_key_of_a_stream_stands_in_its_table() -> None:
    wanted = keys(Stream) - {"name", "limits", "reading"} | keys(Limits, "limits.") | keys(Reading, "reading.")
    assert wanted == DEFAULTS.keys()


def test_a_stream_of_the_defaults_in_the_table_is_one_that_says_nothing() -> None:
    declared: dict[str, Any] = {}
    for key, shown in DEFAULTS.items():
        section, _, name = key.rpartition(".")
        said = shown.strip("`").replace(",", "")
        if said not in ("", "none", "required"):
            inside = declared.setdefault(section, {}) if section else declared
            inside[name] = int(said) if said.isdecimal() else {"true": True, "false": False}.get(said, said)
    assert "limits" in declared
    assert make_stream(**declared) == make_stream()
