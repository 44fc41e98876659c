"""Small files put together by Spark, beside batches that commit: no row changed, no commit lost. I2, I3, I7."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _OverwriteFiles

from tests.builders.published_bytes import rows_with_bytes
from tests.builders.table_rows import NOON, facts, held_row, payloads, published_row, stage, write_landing
from tests.deployment_rig import eventually
from tests.domain.maintenance_rig import STREAM, Rig, limits, went
from tests.postgresql import Postgresql
from wavestitch.batch.stream_state import load_state
from wavestitch.contracts.errors import Altered, BadInput
from wavestitch.contracts.position import HeadKind
from wavestitch.maintain.compaction import compact_locally
from wavestitch.maintain.run import maintain_stream
from wavestitch.tables.access.spark_catalog import spark_catalog_conf
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.maintenance.replacement_proof import prove_replacements
from wavestitch.tables.maintenance.verify_waveforms import verify_waveforms
from wavestitch.tables.read_waveforms import read_waveforms

# Numbers at the edge: one, minus zero, the least of all, and what has all its digits.
ODD = np.array([0x3FF0000000000000, 1 << 63, 1, 0x3FF5555555555555], "<u8").view("<f8")


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.fixture(params=["sqlite", "postgresql"])
def rig_on_each(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    """Of each catalog that Spark reaches through JDBC."""
    if request.param == "sqlite":
        return Rig(tmp_path, samples="double")
    server: Postgresql = request.getfixturevalue("postgresql")
    return Rig(tmp_path, server.address(server.new_database()), samples="double")


def many_small_files(rig: Rig) -> None:
    """Nine heads with a file of each of two days, nine with a file of held rows, nine with nothing.

    The very first is not recorded."""
    for n in range(9):
        sequence = rig.number + 1
        landing = write_landing(rig.folder / f"l{n}.arrow", [(0, n, b"open %d" % n)])
        chunk = facts(0, n, b"open %d" % n)._replace(waveform_id=f"open-{n}")
        row = held_row(chunk, landing=landing, row=0, decision=f"d{sequence}", sequence=sequence)
        rig.hold([row], decision=f"d{sequence}", sequence=sequence)
        days = [
            published_row(f"w{n}-{d}", start=NOON + timedelta(days=d), raw=ODD, sample_format="f64le") for d in range(2)
        ]
        files = [stage(rig.tables.data_folder(), f"{n}-{r['waveform_id']}", [r], samples="double") for r in days]
        base = rig.publish()
        rig.record(rig.tables.commit(base, base.next(), files))
        rig.number += 1


def test_rows_stay_as_they_are_and_a_batch_that_commits_meanwhile_wins(rig_on_each, java_home, spark_table_jars):
    rig = rig_on_each
    many_small_files(rig)
    deployment = rig.deployment
    spark = deployment.settings.spark.model_copy(
        update={"java_home": java_home, "conf": {"spark.jars": ",".join(map(str, spark_table_jars))}}
    )
    object.__setattr__(deployment, "settings", deployment.settings.model_copy(update={"spark": spark}))
    before = {r["waveform_id"]: r for r in rows_with_bytes(read_waveforms(rig.tables))}
    held = load_state(rig.tables, topic_id="").held
    assert len(before) == 18
    assert len(held) == 9
    data = rig.folder / "warehouse" / STREAM / "waveforms" / "data"
    committed = []

    def commit_while_spark_writes() -> None:
        eventually(lambda: any(p.name.endswith(".parquet") for p in data.glob("start_time_day=*/*")), seconds=120)
        committed.append(rig.publish("meanwhile"))

    beside = threading.Thread(target=commit_while_spark_writes)
    beside.start()
    report = maintain_stream(
        deployment,
        STREAM,
        apply=True,
        only=["compact"],
        limits=limits(small_files=5),
        compact=compact_locally(deployment, say=lambda _: None),
    )
    beside.join()
    (action,) = report.actions
    assert action.count == 18 + 9 + 27
    assert action.facts["rewritten"] >= 54
    assert action.facts["rows_compared"] >= 54
    assert report.before.data_files == {"waveforms": 18, "held": 9, "batches": 27}
    assert report.after.data_files["waveforms"] <= 3
    assert report.after.data_files["held"] == 1

    after = {r["waveform_id"]: r for r in rows_with_bytes(read_waveforms(rig.tables))}
    assert after.pop("meanwhile")["samples"] == np.arange(8, dtype="<i2").tobytes()
    assert {r["samples"] for r in after.values()} == {ODD.tobytes()}
    assert verify_waveforms(rig.tables.waveforms()).altered == ()
    assert after == before
    assert len(read_waveforms(rig.tables, columns=["waveform_id"])) == 19
    # The head is found below the snapshots that Spark has made, and what is held is whole.
    newest, before_it = rig.tables.heads()[:2]
    assert (newest.kind, before_it) == (HeadKind.MAINTENANCE, committed[0])
    assert load_state(rig.tables, topic_id="").held == held
    out = rig.folder / "out.arrow"
    assert len(payloads(rig.tables, [h.chunk.key for h in held], out)) == 9
    assert [b.sequence for b in rig.tables.batches()] == list(range(29, 1, -1))
    # A cache of ids that had not seen the files before they were put together finds them in the new ones.
    assert set(deployment.tables(STREAM).published([*before, "meanwhile", "absent"])) == {*before, "meanwhile"}

    # With the next head the ones before it go, and then the old files.
    rig.publish("next")
    rig.maintain("snapshots", "orphans")
    left = {p.name for p in data.rglob("*.parquet")}
    assert len(left) == report.after.data_files["waveforms"] + 1
    assert set(rig.ids()) == {*before, "meanwhile", "next"}
    assert set(rig.tables.published(before)) == set(before)


class Replace(_OverwriteFiles):
    """pyiceberg makes no replacing snapshots, so it has no summary for one."""

    def _summary(self, snapshot_properties=None):
        return Summary(Operation.REPLACE)


def replace(rig: Rig, *rows: dict) -> None:
    """A snapshot that says it replaces all files, with these rows instead: what a faulty compaction leaves."""
    table = rig.tables.waveforms()
    staged = stage(rig.tables.data_folder(), f"replaced-{uuid.uuid4().hex}", rows)
    transaction = table.transaction()
    with Replace(Operation.REPLACE, transaction, table.io) as change:
        for task in table.scan().plan_files():
            change.delete_data_file(task.file)
        change.append_data_file(parquet_file_to_data_file(table.io, table.metadata, f"file://{staged.path}"))
    transaction.commit_transaction()


def test_a_replacement_that_changed_a_row_lost_one_or_doubled_one_is_found_out(rig):
    rows = [published_row("a"), published_row("b")]
    rig.publish("a")
    before = rig.publish("b").snapshot_id
    replace(rig, *rows)
    assert prove_replacements(rig.tables.waveforms(), since=before) == 2
    for wrong in ([rows[0]], [*rows, rows[0]], [rows[0], {**rows[1], "samples": [1, *rows[1]["samples"][1:]]}]):
        since = rig.tables.waveforms().metadata.current_snapshot_id
        replace(rig, *wrong)
        with pytest.raises(Altered, match="the snapshot before it"):
            prove_replacements(rig.tables.waveforms(), since=since)
        replace(rig, *rows)
    assert Counter(rig.ids()) == Counter(["a", "b"])


def test_waveforms_with_nan_are_not_given_to_spark_which_keeps_no_bits_of_them(tmp_path):
    rig = Rig(tmp_path, samples="double")
    many_small_files(rig)
    nan = {**published_row("nan", raw=np.array([np.nan]), sample_format="f64le"), "nonfinite_count": 1}
    head = rig.tables.head()
    rig.tables.commit(head, head.next(), [stage(rig.tables.data_folder(), "nan", [nan], samples="double")])
    report = rig.maintain("compact", small_files=5, apply=False)
    (action,) = report.actions
    assert action.count == 9 + 27  # those of the other tables
    assert action.kept == ("ecg.waveforms stays as it is: 1 of its files may have NaN, whose bits Spark does not keep",)


def test_spark_is_not_started_where_there_is_nothing_to_put_together(rig):
    for n in range(3):
        rig.publish(f"w{n}")
    assert went(rig.maintain("compact", small_files=4), "compact") == 0
    assert went(rig.maintain("compact", small_files=3, apply=False), "compact") == 6


def test_an_id_cache_that_lags_behind_a_compaction_does_not_forget_what_it_had_not_seen(rig):
    rig.publish("a")
    tables = rig.deployment.tables(STREAM)
    assert set(tables.published(["a", "b"])) == {"a"}
    rig.publish("b")
    replace(rig, published_row("a"), published_row("b"))
    assert set(tables.published(["a", "b"])) == {"a", "b"}


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("sqlite:////srv/a b/catalog.db", "jdbc:sqlite:/srv/a b/catalog.db?busy_timeout=60000"),
        ("postgresql+psycopg2://me:secret@db:5433/cat", "jdbc:postgresql://db:5433/cat"),
    ],
)
def test_spark_is_told_of_the_same_catalog(uri, expected):
    conf = spark_catalog_conf(CatalogSettings("ws", uri, "file:///w"))
    assert conf["spark.sql.catalog.ws.uri"] == expected
    assert conf.get("spark.sql.catalog.ws.jdbc.password", "secret") == "secret"
    with pytest.raises(BadInput, match=r"\[spark.conf\]"):
        spark_catalog_conf(CatalogSettings("ws", "mysql://x/y", "file:///w"))
