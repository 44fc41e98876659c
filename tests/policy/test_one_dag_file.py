"""One file of two lines makes all DAGs of a deployment, and Airflow gives a DAG file so much time."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.stack.airflow_home import prepare_airflow, write_settings
from wavestitch import stream_files
from wavestitch.contracts.errors import BadInput
from wavestitch.settings import Settings

prepare_airflow()

GOOD = "topic: t\ngroup: g\n"
USUAL = (
    GOOD
    + "expectations:\n"
    + "".join(
        "  - type: expect_column_values_to_be_between\n"
        f"    kwargs: {{column: sampling_rate_hz, min_value: {n}, max_value: 1000}}\n"
        for n in range(1, 16)
    )
)
"""1.8 KiB."""
WORST = (GOOD + "description: [" + "[],[]," * 11_000)[: stream_files.MOST_BYTES - 2] + "]\n"

CALLS_A_SECOND = 2_500_000
"""Of a processor that does nothing else, over all that is counted here: 3.3 million were measured where DAGs are made,
2 where they are stored, 4 where YAML is read."""


@pytest.fixture
def streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "streams"
    folder.mkdir()
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(write_settings(tmp_path, streams=folder)))
    return folder


def all_dags() -> dict[str, Any]:
    from wavestitch.airflow import dags  # noqa: PLC0415 - Airflow is prepared by now

    return dags()


def calls(done: Callable[[], object]) -> int:
    """Of functions, Python's and C's, once what is kept from one time to the next is kept: the same on each machine."""
    done()
    counted = 0

    def profile(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal counted
        counted += event in {"call", "c_call"}

    sys.setprofile(profile)
    try:
        done()
    finally:
        sys.setprofile(None)
    return counted


def refused(streams: Path, name: str) -> None:
    with pytest.raises(BadInput):
        stream_files.read_stream(streams, name)


def test_each_stream_s_file_is_read_once_for_all_dags_that_are_made_of_it(
    streams: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (streams / "read_once.yaml").write_text(GOOD)
    (streams / "refused_once.yaml").write_text("topic: [")
    looked, parse = Counter[str](), stream_files.parse_stream

    def counted(text: str, *, name: str, where: str) -> Any:
        looked[name] += 1
        return parse(text, name=name, where=where)

    monkeypatch.setattr(stream_files, "parse_stream", counted)
    made = all_dags()
    assert {"DAG ingest_read_once", "DAG promote_read_once", "DAG ingest_refused_once"} <= made.keys()
    assert looked == {"read_once": 1, "refused_once": 1}
    (streams / "read_once.yaml").write_text(f"{GOOD}description: another\n")
    all_dags()
    assert looked == {"read_once": 2, "refused_once": 1}, "what changed is read anew"


@pytest.mark.parametrize("flow", ["ingest", "backfill", "rewind", "decide", "verify", "promote"])
def test_a_task_makes_its_own_dag_anew_and_reads_no_other_stream(
    flow: str, streams: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process parses the whole file before it begins."""
    from airflow.sdk.definitions.context import (  # noqa: PLC0415 - Airflow is prepared by now
        _AIRFLOW_PARSING_CONTEXT_DAG_ID as OF_TASK,
    )

    for name in ("own", "other", "refused"):
        (streams / f"{name}.yaml").write_text("topic: [" if name == "refused" else GOOD)
    looked, text = list[str](), stream_files._text

    def noted(folder: Path, file: str, *, where: str) -> str:
        looked.append(file)
        return text(folder, file, where=where)

    monkeypatch.setattr(stream_files, "_text", noted)
    monkeypatch.setenv(OF_TASK, f"{flow}_own")
    made = {dag.dag_id for dag in all_dags().values()}
    assert made - {"maintain", "watch"} == {f"{flow}_own"}
    assert set(looked) <= {"own.yaml"}


def test_as_many_streams_as_are_read_have_their_dags_within_the_time_that_airflow_gives_a_file(streams: Path) -> None:
    """By what a processor does that has nothing else to do, counted and not timed."""
    from airflow.configuration import conf  # noqa: PLC0415
    from airflow.serialization.serialized_objects import DagSerialization  # noqa: PLC0415

    most, few = Settings.model_fields["most_streams"].default, 2
    for n in range(few):
        (streams / f"usual_{n}.yaml").write_text(USUAL)
    made = all_dags()
    made_in = calls(all_dags) * most // few
    stored_in = calls(lambda: [DagSerialization.to_dict(dag) for dag in made.values()]) * most // few
    (streams / "worst.yaml").write_text(WORST)
    read_in = calls(lambda: refused(streams, "worst")) * most * stream_files.BYTES_EACH // stream_files.MOST_BYTES
    imports = conf.getfloat("core", "dagbag_import_timeout") * CALLS_A_SECOND
    whole = conf.getfloat("dag_processor", "dag_file_processor_timeout") * CALLS_A_SECOND
    print(f"made in {made_in:,} calls, stored in {stored_in:,}, read in {read_in:,} at worst")
    assert made_in + read_in < imports / 1.5
    assert made_in + read_in + stored_in < whole
