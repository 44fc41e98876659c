"""What was compared is promoted on real parts: broker, Iceberg, Great Expectations, Spark. Each id is there once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.builders.altered_rows import alter_row
from tests.builders.published_bytes import published_bytes
from tests.builders.recordings import cut, recordings
from tests.conftest import TopicFactory
from tests.deployment_rig import STREAM, make_deployment_rig
from wavestitch.cli import app
from wavestitch.contracts.quantities import Partition
from wavestitch.local.broker import Broker
from wavestitch.tables.maintenance.verify_waveforms import verify_waveforms


def test_a_new_definition_a_repaired_row_and_back_on_real_parts(
    tmp_path: Path, broker: Broker, topic_factory: TopicFactory, java_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = make_deployment_rig(
        tmp_path / "deployment", bootstrap=broker.bootstrap, topic=topic_factory(), java_home=java_home
    )
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(whole.folder / "wavestitch.toml"))
    sent = recordings(4)
    whole.send(cut(sent))
    whole.run_without_spark()
    tables = whole.deployment.tables(STREAM)
    before = sorted(published_bytes(tables))
    group = whole.deployment.log.group_offsets(whole.group, whole.topic, [Partition(0)])
    table = tables.waveforms()
    assert table is not None
    samples = table.scan(row_filter="waveform_id == 'w-0001'").to_arrow()["samples"][0].as_py()
    alter_row(table, "w-0001", samples=[samples[0] + 1, *samples[1:]])
    assert sorted(published_bytes(tables)) != before

    path = whole.folder / "streams" / f"{STREAM}.yaml"
    refused = "{type: expect_column_values_to_not_be_in_set, kwargs: {column: waveform_id, value_set: [w-0002]}}"
    path.write_text(path.read_text() + f"\nexpectations: [{refused}]\n")
    shown = command("promote", STREAM, "--why", "w-0002 is a test", "--json")
    assert shown["says"] == "1 replaced, 0 newly published, 1 taken out"
    assert {i: change for i, change, _ in shown["changes"]} == {"w-0001": "differs", "w-0002": "newly failing"}
    done = command("promote", STREAM, "--preview", shown["preview"], "--apply", "--json")
    assert done["done"]["waveforms"]["published"] == 1
    now = published_bytes(tables)
    assert sorted(now) == [row for row in before if row[0] != "w-0002"]
    assert max(Counter(i for i, _ in now).values()) == 1
    table = tables.waveforms()
    assert table is not None
    assert verify_waveforms(table).altered == ()
    assert whole.deployment.log.group_offsets(whole.group, whole.topic, [Partition(0)]).keys() == group.keys()
    head = tables.head()
    assert head is not None
    assert head.positions[Partition(0)].next_offset == group[Partition(0)].offset  # type: ignore[union-attr]
    assert head.held is not None
    assert set(head.held.counts) == {"failed_expectation"}

    command("undo", STREAM, "--of", str(head.sequence), "--apply", "--json")
    assert {i for i, _ in published_bytes(tables)} == {i for i, _ in before}
    assert dict(published_bytes(tables))["w-0002"] == dict(before)["w-0002"]


def command(*words: str) -> Any:
    said = CliRunner().invoke(app, list(words))
    assert said.exit_code == 0, said.output
    return json.loads(said.stdout)
