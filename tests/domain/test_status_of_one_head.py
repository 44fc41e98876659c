"""What is said of a stream is of one head, whoever commits while it is looked at."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.builders.sending import send_chunk
from tests.deployment_rig import STREAM
from tests.hostile.landed_deployment import FakeDeployment, make_landed_deployment, run_landed_batch
from wavestitch.batch import stream_facts
from wavestitch.batch.stream_facts import table_facts


def test_what_waits_is_counted_by_the_head_that_counts_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms = time.time_ns() // 1_000_000
    whole = make_landed_deployment(tmp_path, stream_yaml="", partitions=1)
    deployment = whole.deployment
    assert isinstance(deployment, FakeDeployment)
    send_chunk(deployment.memory, "whole", at_ms=now_ms)
    run_landed_batch(deployment)
    before, looks = deployment.tables(STREAM).head(), stream_facts.open_waveforms

    def after_an_ingest(*given: Any, **how: Any) -> Any:
        for n in range(3):
            send_chunk(deployment.memory, f"half{n}", at_ms=now_ms, count=2)
        run_landed_batch(deployment)
        return looks(*given, **how)

    monkeypatch.setattr(stream_facts, "open_waveforms", after_an_ingest)
    found = table_facts(deployment, STREAM)
    assert (found.open, found.quarantined) == (0, 0)
    assert found.head == before != deployment.tables(STREAM).head()
    monkeypatch.setattr(stream_facts, "open_waveforms", looks)
    assert table_facts(deployment, STREAM).open == 3
