"""Maintenance at any point of a stream's history changes no published row and no held waveform that counts.

Real Iceberg tables; histories of publishing, holding, healing, rewinding, planning and abandoning. I1, I2, I3, I7.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.table.update import SetLocationUpdate

from tests.builders.table_rows import facts, first_head, held_row, payloads, published_row, stage, write_landing
from tests.domain.maintenance_rig import STREAM, Rig
from wavestitch.batch.stream_state import load_state
from wavestitch.contracts.errors import Terminal, WavestitchError
from wavestitch.contracts.quantities import EpochMs
from wavestitch.tables.commit.own_files import LocalFiles, stored_files
from wavestitch.tables.commit.own_place import OwnPlace
from wavestitch.tables.commit.stored_table import StoredTable
from wavestitch.tables.read_waveforms import read_waveforms
from wavestitch.tables.stream_tables import StreamTables

SOME = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(0, 5)),
        st.tuples(st.just("hold"), st.integers(0, 5)),
        st.tuples(st.sampled_from(["plan", "stale", "rewind", "abandon", "junk"]), st.just(0)),
        st.tuples(st.just("maintain"), st.integers(1, 3)),
        st.tuples(st.just("elsewhere"), st.integers(0, 2)),
    ),
    min_size=4,
    max_size=10,
)


class History:
    """Plays a history; `open` and `done` say what must be there, by id."""

    def __init__(self, folder: Path) -> None:
        self.rig = Rig(folder)
        self.rig.publish()
        self.done: set[str] = set()
        self.open: set[str] = set()
        self.plans: list[str] = []
        self.other = StreamTables(self.rig.deployment.catalog_settings(), "eeg")
        self.other.commit(None, first_head(), [stage(self.other.data_folder(), "f9", [published_row("precious")])])

    def play(self, what: str, number: int) -> None:
        wid = f"w{number}"
        if what == "publish" and wid not in self.done:
            self.rig.publish(wid)
            self.done.add(wid)
            self.open.discard(wid)
        elif what == "hold" and wid not in self.done | self.open:
            self.hold(wid, number)
            self.open.add(wid)
        elif what == "rewind":
            head = self.rig.tables.head()
            self.rig.publish(generation=head.generation + 1)
        elif what in ("plan", "stale"):
            clock = 0 if what == "stale" else 10**15
            self.plans.append(self.rig.plan(self.rig.tables.head(), clock_ms=clock, nonce=str(len(self.plans))).plan_id)
        elif what == "abandon" and self.plans:
            self.rig.deployment.folder(STREAM, self.plans.pop()).abandon(who="ops", why="?", at_ms=EpochMs(0))
        elif what == "elsewhere":
            self.maintain_elsewhere(self.rig.tables.stored()[number])
        elif what == "junk":
            (self.rig.tables.data_folder() / f"junk-{len(self.plans)}.parquet").write_bytes(b"x")

    def maintain_elsewhere(self, stored: StoredTable) -> None:
        """Somebody sets the location of one table, maintenance comes by, and it is set back."""
        table = stored.load()
        if table is None:
            return
        for where in (f"file://{self.rig.folder}", stored.place.location):
            with table.transaction() as change:
                change._apply((SetLocationUpdate(location=where),), ())
            if where != stored.place.location:
                with suppress(Terminal):
                    self.rig.maintain("snapshots", "orphans")

    def hold(self, wid: str, number: int) -> None:
        decision = f"d{self.rig.number + 1}"
        landing = write_landing(self.rig.folder / f"{decision}.arrow", [(3, 10 * number, wid.encode() * 4)])
        piece = published_row(wid)["chunks"][0]
        chunk = facts(3, 10 * number, wid.encode() * 4)._replace(waveform_id=wid, seq=0, piece=piece["piece"])
        sequence = self.rig.tables.head().sequence + 1 if self.rig.tables.head() else 2
        row = held_row(chunk, landing=landing, row=0, decision=decision, sequence=sequence)
        self.rig.hold([row], decision=decision, sequence=sequence)

    def seen(self) -> tuple:
        """What a reader and the next batch see."""
        now = load_state(self.rig.tables, topic_id="")
        rows = sorted(read_waveforms(self.rig.tables).to_pylist(), key=lambda r: r["waveform_id"])
        keys = [h.chunk.key for h in now.held]
        out = self.rig.folder / f"payloads-{len(list(self.rig.folder.iterdir()))}.arrow"
        numbers = payloads(self.rig.tables, keys, out) if keys else {}
        # Taking rows out and putting files together make heads of maintenance: positions and all else stay.
        stands = (now.head.positions, now.head.generation, now.head.topic_id, now.head.watermark_ms, now.head.skipped)
        counted = now.head.held.counts if now.head.held is not None else {}
        others = read_waveforms(self.other).to_pylist()
        return stands, counted, rows, now.held, sorted(numbers.items(), key=repr), others


@settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow])
@given(history=SOME)
def test_maintenance_at_any_point_changes_nothing_that_counts(history: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        played = History(Path(folder))
        for what, number in [*history, ("maintain", 1), ("publish", 0), ("maintain", 1), ("maintain", 2)]:
            if what not in ("maintain", "elsewhere"):
                played.play(what, number)
                continue
            before = played.seen()
            if what == "elsewhere":
                played.play(what, number)
            else:
                played.rig.maintain(least_snapshots=number, most_snapshots=number)
            assert played.seen() == before
        _, _, rows, held, _, others = played.seen()
        assert [r["waveform_id"] for r in others] == ["precious"]
        head = played.rig.tables.head()
        assert {r["waveform_id"] for r in rows} == played.done
        assert {h.chunk.waveform_id for h in held} == played.open
        assert len(rows) == len(played.done)
        assert [b.sequence for b in played.rig.tables.batches()] == list(range(head.sequence, 0, -1))


@pytest.mark.parametrize("number", [0, 2])
def test_a_table_that_is_believed_about_its_place_is_found_out(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seeded bug: the folder that is cleaned is the one that the table says, and only its own names count."""
    played = History(tmp_path)
    played.play("publish", 0)
    before = played.seen()
    monkeypatch.setattr(OwnPlace, "refuse_other", lambda _self, _table: None)
    monkeypatch.setattr(LocalFiles, "listed", lambda _: stored_files((tmp_path,)))
    monkeypatch.setattr(StreamTables, "named_by_others", lambda _: set())
    played.play("elsewhere", number)
    with pytest.raises((WavestitchError, AssertionError)):
        assert played.seen() == before
