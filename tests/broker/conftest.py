"""What the tests of readers share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.reading_rig import LARGE, SMALL, Rig
from wavestitch.local.broker import Broker


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A module that says `BOTH_WAYS` has its plans read by the client, and from raw batches."""
    if "rig" in metafunc.fixturenames and getattr(metafunc.module, "BOTH_WAYS", False):
        metafunc.parametrize("rig", [LARGE, SMALL], indirect=True, ids=["by the client", "from raw batches"])


@pytest.fixture
def rig(broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> Rig:
    return Rig(broker.bootstrap, tmp_path / "landing", mean=getattr(request, "param", LARGE))
