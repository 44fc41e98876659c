"""What the pages say of security is what the code does."""

from __future__ import annotations

import re

from tests.conftest import ROOT
from wavestitch.kafka import client_settings

MODEL = (ROOT / "docs" / "threat-model.md").read_text()
SETTINGS = (ROOT / "docs" / "settings.md").read_text()


def test_the_allowed_client_options_are_those_of_the_page() -> None:
    listed = SETTINGS[SETTINGS.index("Allowed in `[kafka.options]`") : SETTINGS.index("Everything else is refused")]
    assert set(re.findall(r"`([a-z.0-9]+)`", listed)) == set(client_settings._ALLOWED)


def test_every_test_that_the_threat_model_names_is_there() -> None:
    files = {p.name: p.read_text() for p in (ROOT / "tests").rglob("*.py")}
    names = re.findall(r"`(test_[a-z0-9_]+)`", MODEL)
    assert len(names) > 10
    for name in names:
        assert any(f"def {name}(" in text for text in files.values()), f"docs/threat-model.md names {name}"
    for path in re.findall(r"`(tests/[a-z_/]+(?:\.py)?)`", MODEL):
        assert (ROOT / path).exists(), f"docs/threat-model.md names {path}"
    for name in re.findall(r"`(test_[a-z_]+\.py)`", MODEL):
        assert (ROOT / "tests" / "security" / name).exists(), f"docs/threat-model.md names {name}"
