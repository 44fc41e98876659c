"""One broker for the session that knows its users and grants them little, and sites that come in as one of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.secure_broker import SecureBroker, start_secure_broker
from wavestitch.local.broker import stop_broker


@pytest.fixture(scope="session")
def secure_broker(
    java_home: Path, kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecureBroker]:
    folder = tmp_path_factory.mktemp("secure")
    try:
        yield start_secure_broker(folder, java_home=java_home, jars=kafka_jars)
    finally:
        stop_broker(folder / "kafka")
