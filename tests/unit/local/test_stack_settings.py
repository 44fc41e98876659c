"""What the embedded stack writes as its settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from wavestitch.contracts.errors import Refused
from wavestitch.local.spark_server import SparkServer
from wavestitch.local.stack import start_stack, write_config
from wavestitch.settings import load_settings


def test_the_settings_of_a_stack_name_the_spark_that_it_started_and_where_its_token_is(tmp_path: Path) -> None:
    server = SparkServer("sc://127.0.0.1:12345", f"file:{tmp_path}/spark/token", pid=1)
    given = {"bootstrap": "127.0.0.1:1", "java_home": tmp_path, "streams": tmp_path / "streams"}
    for spark in (server, None):
        path = write_config(tmp_path, **given, spark=spark)  # type: ignore[arg-type]
        found = load_settings({"WAVESTITCH_CONFIG": str(path)}).spark
        assert (found.remote, found.token) == ((server.remote, server.token) if spark else (None, None))


def test_a_folder_in_which_airflow_finds_no_home_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    folder = tmp_path / "feature%2Fx"
    with pytest.raises(Refused, match="has a % in it"):
        start_stack(say=print, folder=folder)
    assert not folder.exists()
