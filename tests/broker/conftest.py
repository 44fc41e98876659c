"""What the tests of readers share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.reading_rig import Rig
from wavestitch.local.broker import Broker


@pytest.fixture
def rig(broker: Broker, tmp_path: Path) -> Rig:
    return Rig(broker.bootstrap, tmp_path / "landing")
