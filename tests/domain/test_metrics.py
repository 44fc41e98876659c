"""Figures of a stream: each commit counted once whoever looks, and nobody fails or waits for them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from tests.builders.full_disk import largest_file
from tests.builders.heads import make_row
from tests.builders.metrics import in_request, in_textfile
from tests.builders.webhook import dripping_webhook, listening_webhook
from tests.domain.maintenance_rig import STREAM, Rig
from wavestitch.batch import metrics
from wavestitch.batch.metric_sinks import otlp_request
from wavestitch.batch.metrics import tell_metrics
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import EpochMs, Offset

PUBLISHED = ("wavestitch_waveforms_total", "published")
COMMITS = ("wavestitch_commits_total", "ingest")


class Told(Rig):
    """`collected`: where a collector looks."""

    @property
    def collected(self) -> Path:
        return self.folder / "collected"

    def tell_to(self, said: str) -> None:
        config = self.folder / "wavestitch.toml"
        before = config.read_text().partition("[metrics]")[0]
        config.write_text(f"{before}[metrics]\n{said}\n")
        self.read_settings({"WAVESTITCH_CONFIG": str(config)})

    def commit(self, published: int, **row: object) -> None:
        """One more batch, with its row in the history."""
        head = self.publish(recorded=False, positions={0: Position(Offset(0))}, topic_id=self.log.topic_id)
        figures = {
            "partitions": {"0": {"planned": 10 * published, "read": 10 * published}},
            "reading": {"0": [100.0, 1.0]},
            "counts": {"published": 5 * published},
            "waveforms": {"published": published, "open": 7, "quarantined": 0},
            "seconds": {"read": 0.5, "publish": 0.25},
        }
        known = {"sequence": head.sequence, "decision": head.decision, "plan_id": f"{head.sequence:032x}"}
        self.tables.append_batches([make_row(**{**figures, **known, **row})])

    def look(self) -> dict[tuple[str, ...], float]:
        tell_metrics(self.deployment, STREAM)
        return in_textfile(self.collected, STREAM)


@pytest.fixture
def told(tmp_path: Path) -> Told:
    rig = Told(tmp_path)
    rig.collected.mkdir()
    rig.tell_to(f'textfile = "{rig.collected}"')
    return rig


def test_each_commit_is_counted_once_however_often_somebody_looks_and_whichever_look_was_lost(told: Told) -> None:
    told.commit(1)  # before somebody wanted metrics
    told.commit(2)
    assert told.look()[PUBLISHED] == told.look()[PUBLISHED] == 2
    told.commit(3)  # nobody looked after this one
    told.commit(4)
    found = told.look()
    assert found == {**found, PUBLISHED: 9, COMMITS: 3, ("wavestitch_read_records_total", "0"): 90}
    assert found["wavestitch_step_seconds_total", "read"] == 1.5
    assert found["wavestitch_last_batch_seconds", "publish"] == 0.25
    assert (told.collected / f"wavestitch_{STREAM}.prom").stat().st_mode & 0o777 == 0o644


def test_a_table_that_was_set_back_takes_nothing_from_a_counter_and_is_counted_on(told: Told) -> None:
    for n in (1, 2):
        told.commit(n)
        told.look()
    counted = told.deployment.settings.landing / ".metrics" / STREAM / "counted.json"
    counted.write_text(counted.read_text().replace('"sequence": 2', '"sequence": 50'))
    assert told.look()[PUBLISHED] == 3
    told.commit(4)
    assert told.look()[PUBLISHED] == 7


def test_a_log_that_does_not_answer_is_said_and_what_the_tables_know_is_told(told: Told) -> None:
    told.commit(1)
    assert told.look()["wavestitch_up",] == 1
    told.log.name = "gone"
    found = told.look()
    assert (found["wavestitch_up",], found[PUBLISHED]) == (0, 1)
    assert not any(name.startswith(("wavestitch_lag", "wavestitch_headroom")) for name, *_ in found)


def test_what_strangers_wrote_into_the_history_becomes_no_label(told: Told) -> None:
    said = 'x"} 1\nwavestitch_up{stream="ecg"} 1 # '
    told.commit(
        1,
        kind=said,
        partitions={"0": {"planned": 2, "read": 2, said: 1}},
        counts={said: 1},
        waveforms={said: 1},
        seconds={said: 1.0},
    )
    assert "# " not in str(list(told.look()))
    assert told.look()["wavestitch_read_records_total", "0"] == 2


@pytest.mark.parametrize(
    "odd",
    [
        {"partitions": {"0": {"planned": 1}}, "reading": {"0": [-1.0, -1.0]}},
        {"partitions": {"0": {"planned": 1, "read": -5}}, "reading": {"0": [-1.0, 1e300]}},
        {
            "partitions": {"0": {"planned": 1, "read": 10**30}},
            "reading": {"0": [1e300, 1.0]},
            "seconds": {"read": 1e300},
        },
        {"partitions": {"10000": {"planned": 1, "read": 1}}, "reading": {"10000": [1.0, 1.0]}},
    ],
)
def test_an_odd_row_of_the_history_stops_no_counter_and_makes_no_label(told: Told, odd: dict[str, object]) -> None:
    told.commit(1)
    told.look()
    told.commit(1, **odd)
    told.look()
    told.commit(2)
    found = told.look()
    figures = {name: n for name, n in found.items() if name[0].startswith("wavestitch_read_")}
    assert figures == {("wavestitch_read_records_total", "0"): 30, ("wavestitch_read_bytes_total", "0"): 200}
    assert found[COMMITS] == 3
    assert found["wavestitch_step_seconds_total", "read"] <= 1.5


def test_sinks_that_are_dead_fail_nothing_hold_nobody_up_for_longer_than_said_and_are_one_sentence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rig = Told(tmp_path)
    rig.commit(1)
    with dripping_webhook() as address:
        rig.tell_to(f'textfile = "{tmp_path}/nowhere"\notlp = "{address}hunter2"\ntimeout = "1 s"')
        began = time.monotonic()
        tell_metrics(rig.deployment, STREAM)
        assert time.monotonic() - began < 10
    assert "the metrics are not those of now: " in caplog.text
    assert len(caplog.records) == 1
    assert "hunter2" not in caplog.text


def test_a_full_disk_fails_nothing_and_a_receiver_gets_the_figures_all_the_same(
    told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    told.commit(1)
    before = told.look()
    with listening_webhook() as receiver:
        told.tell_to(f'otlp = "{receiver.address}"')
        told.commit(2)
        tell_metrics(told.deployment, STREAM)  # what a look needs of caches is there then
        told.commit(3)
        with largest_file(100):
            tell_metrics(told.deployment, STREAM)
        assert in_request(receiver.bodies[-1], STREAM)[PUBLISHED] == 6
    assert "File too large" in caplog.text
    assert len(caplog.records) == 1
    assert in_textfile(told.collected, STREAM)[PUBLISHED] == before[PUBLISHED] == 1, "what was there is whole"
    told.tell_to(f'textfile = "{told.collected}"')
    assert told.look()[PUBLISHED] == 6, "counted once"


def test_a_receiver_is_told_with_the_token_and_one_that_refuses_is_a_sentence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "token").write_text("hunter2\n")
    rig = Told(tmp_path)
    rig.commit(1)
    with listening_webhook() as receiver:
        rig.tell_to(f'otlp = "{receiver.address}"\ntoken = "file:{tmp_path}/token"')
        tell_metrics(rig.deployment, STREAM)
        assert caplog.text == ""
        receiver.status = 403
        tell_metrics(rig.deployment, STREAM)
    ((_, headers, _), _) = receiver.calls
    assert (headers["Authorization"], headers["Content-Type"]) == ("Bearer hunter2", "application/x-protobuf")
    assert "calling the receiver of [metrics]: it answered 403" in caplog.text
    assert "hunter2" not in caplog.text


def test_nothing_is_looked_at_where_nobody_wants_figures(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    tell_metrics(rig.deployment, STREAM)
    assert not (tmp_path / "landing").exists()


def test_where_nobody_has_looked_for_long_only_the_newest_commits_are_counted(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    told.commit(1)
    told.look()
    monkeypatch.setattr(metrics, "_MOST_ROWS", 2)
    for published in (2, 3, 4):
        told.commit(published)
    found = told.look()
    assert (found[PUBLISHED], found[COMMITS]) == (1 + 3 + 4, 3)


def test_a_folder_that_is_not_there_is_named_with_the_setting_that_names_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rig = Told(tmp_path)
    rig.commit(1)
    rig.tell_to(f'textfile = "{tmp_path}/nowhere"')
    tell_metrics(rig.deployment, STREAM)
    (said,) = caplog.messages
    assert f"there is no folder {tmp_path}/nowhere: make the one that `textfile` of [metrics] names" in said
    assert not (tmp_path / "nowhere").exists()


def test_a_receiver_is_told_whose_figures_they_are() -> None:
    sent = ExportMetricsServiceRequest.FromString(otlp_request("ecg", [], since=EpochMs(0), now=EpochMs(1)))
    assert [scope.scope.name for one in sent.resource_metrics for scope in one.scope_metrics] == ["wavestitch"]
