"""`wavestitch held …` through the command line itself, over real tables: of Kafka nothing but the group is asked."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spark_apps.in_process import stitch_here
from tests.builders.full_disk import largest_file
from tests.builders.published_bytes import published_bytes
from tests.domain.held_rig import ONE, OTHER, TWO, T, held_rig
from tests.domain.maintenance_rig import Rig
from wavestitch import cli_held
from wavestitch.batch import held_decision
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.cli import main
from wavestitch.contracts.quantities import EpochMs


class Shell:
    """The command line, in this process. `said`: what the last command printed; `code`: its exit code."""

    def __init__(self, rig: Rig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.rig, self.tables = rig, rig.tables
        self._monkeypatch, self._capsys = monkeypatch, capsys
        self.said, self.code = "", 0

    def __call__(self, *words: str) -> str:
        self._monkeypatch.setattr(sys, "argv", ["wavestitch", "held", "ecg", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        self.code = int(ended.value.code or 0)
        out, err = self._capsys.readouterr()
        self.said = " ".join((out + err).split())
        return self.said

    def refused(self, *words: str) -> str:
        self(*words)
        assert self.code != 0, self.said
        return self.said

    def shown(self, *words: str) -> Any:
        self(*words, "--json")
        assert self.code == 0, self.said
        return json.loads(self.said)

    def states(self) -> dict[str, list[str]]:
        return {w["waveform_id"]: w["held_for"] for w in self.shown()["waveforms"]}

    def published(self) -> dict[str, bytes]:
        return dict(published_bytes(self.tables))


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return shell_of(held_rig(tmp_path), monkeypatch, capsys)


def shell_of(rig: Rig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(rig.folder / "wavestitch.toml"))
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setattr(Deployment, "log", rig.log)  # no broker is waited for
    return Shell(rig, monkeypatch, capsys)


class TestLooking:
    def test_the_list_counts_chunks_and_names_waveforms(self, shell: Shell) -> None:
        said = shell()
        assert "held chunks: 3 conflict, 1 open, 2 parked" in said
        assert all(i in said for i in ("conflicting", "half", "parked"))

    def test_a_page_ends_with_the_command_for_the_next(self, shell: Shell) -> None:
        assert "there are more: wavestitch held ecg --after=conflicting" in shell("--most", "1")
        assert shell.shown("list", "--after", "conflicting", "--most", "1")["after"] == "half"

    @pytest.mark.parametrize(
        ("words", "found"),
        [
            (["--reason", "parked"], ["parked"]),
            (["--reason", "parked", "--reason", "open"], ["half", "parked"]),
            (["--source", "nobody"], []),
            (["--until", "2026-01-05T12:00:00Z"], []),
            (["--since", "2026-01-05T12:00:00Z"], ["conflicting", "half", "parked"]),
        ],
    )
    def test_options_say_which_are_meant(self, shell: Shell, words: list[str], found: list[str]) -> None:
        assert [w["waveform_id"] for w in shell.shown("list", *words)["waveforms"]] == found

    def test_one_waveform_is_shown_chunk_by_chunk_with_what_is_missing(self, shell: Shell) -> None:
        said = shell("show", "half")
        assert "half: 1 chunks, 2 bytes" in said
        assert "chunk 0 of 2 at 0:3, 2 bytes, 2026-01-05 12:00:00.003Z" in said
        assert "1 of 2 chunks here; missing: 1" in said
        (one,) = shell.shown("show", "conflicting")
        assert [(c["seq"], c["offset"], c["held_for"]) for c in one["held"]] == [
            (0, 0, "conflict"),
            (1, 1, "conflict"),
            (1, 2, "conflict"),
        ]

    def test_what_is_held_for_a_time_that_no_calendar_has_is_shown_with_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        microseconds = EpochMs(T * 1000)  # sent as milliseconds
        shell = shell_of(held_rig(tmp_path, at=microseconds), monkeypatch, capsys)
        for words in (["show", "half"], ["record", "0:3"]):
            assert f"2 bytes, {microseconds + 3} ms" in shell(*words)
            assert shell.code == 0

    def test_a_record_whose_file_the_disk_refuses_is_told_of_and_nothing_of_it_stays(
        self, shell: Shell, tmp_path: Path
    ) -> None:
        into = tmp_path / "there" / "record.arrow"
        with largest_file(64):
            said = shell.refused("record", "0:3", "--into", str(into))
        # Lines end where the terminal does.
        assert f"Transient:writing{into}failed:" in "".join(said.split())
        assert "look after space and rights there" in said
        assert list(into.parent.iterdir()) == []
        shell("record", "0:3", "--into", str(into))
        assert (shell.code, into.is_file()) == (0, True)

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (["show"], "which waveform? `wavestitch held ecg show ID`"),
            (["show", "nobody"], "nothing of 'nobody' is held"),
            (["dismiss", "half"], "nothing is done by 'dismiss'; there are list, show"),
            (["list", "--reason", "corrupt"], "--reason 'corrupt' is none of a waveform"),
            (["list", "--since", "yesterday"], "yesterday"),
        ],
    )
    def test_what_makes_no_sense_is_refused_with_what_would(self, shell: Shell, words: list[str], says: str) -> None:
        assert says in shell.refused(*words)


class TestDeciding:
    def test_without_apply_it_is_a_preview_and_nothing_is_changed(self, shell: Shell) -> None:
        before = shell.tables.head()
        said = shell("discard", "conflicting", "half", "--why", "a test")
        assert "discard: 2 waveforms, 4 chunks (3 conflict, 1 open), 8 bytes" in said
        assert "nothing was changed; do it with --apply" in said
        assert shell.tables.head() == before

    def test_discard_and_its_opposite_are_carried_through_and_recorded(self, shell: Shell) -> None:
        before = shell.states()
        shell("discard", "half", "--why", "sent by mistake", "--apply")
        assert shell.code == 0, shell.said
        assert shell.states() == before | {"half": ["discarded"]}
        head = shell.tables.head()
        assert head is not None
        assert (head.kind, head.note.endswith(": sent by mistake")) == ("held", True)
        assert shell.tables.batches()[0].note == head.note
        assert "is discarded; restore it first" in shell.refused("redrive", "half", "--why", "again")
        shell("restore", "half", "--why", "it was right", "--apply")
        assert shell.states() == before

    def test_a_redrive_of_what_is_not_whole_leaves_it_held(self, shell: Shell) -> None:
        before = shell.states()
        assert "done: head 3, 0 waveforms published" in shell("redrive", "half", "--why", "to see", "--apply")
        assert shell.states() == before

    def test_a_decision_takes_so_many_unless_all_are_meant(self, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(held_decision, "MOST", 2)
        said = shell("discard", "--why", "a clean table", "--apply")
        assert "there are more than one decision takes; say --all" in said
        assert list(shell.states().values()) == [["discarded"], ["discarded"], ["parked"]]
        shell("discard", "--why", "a clean table", "--all", "--apply")
        assert list(shell.states().values()) == [["discarded"]] * 3

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (["discard", "half"], "say why this is decided (--why …)"),
            (["discard", "half", "--why", "x", "--copy", "first"], "nothing else does"),
            (["pick", "conflicting", "--why", "x"], "which copy is right?"),
            (["pick", "conflicting", "--why", "x", "--copy", "left"], "allowed are first, last"),
            (["pick", "conflicting", "--why", "x", "--copy", "0:9"], "has no chunk at 0:9"),
            (["pick", "parked", "--why", "x", "--copy", "first"], "is no conflict"),
            (["accept", "conflicting", "--why", "x"], "is conflict, which nobody can accept"),
            (["accept", "half", "--why", "x"], "is open, which nobody can accept"),
            (["restore", "parked", "--why", "x"], "is not discarded"),
            (["discard", "nobody", "--why", "x"], "nothing that is held and meant can be changed by discard"),
        ],
    )
    def test_what_cannot_be_decided_is_refused_and_nothing_changes(
        self, shell: Shell, words: list[str], says: str
    ) -> None:
        before = shell.tables.head()
        assert says in shell.refused(*words, "--apply")
        assert shell.tables.head() == before

    def test_what_was_kept_is_shown_again_and_done_as_it_was_shown_or_not_at_all(self, shell: Shell) -> None:
        kept = shell.shown("discard", "half", "parked", "--why", "sent by mistake", "--keep")["plan"]
        other = shell.shown("discard", "half", "--why", "sent by mistake", "--keep")["plan"]
        before = shell.tables.head()
        said = shell("--preview", kept)
        assert "2 waveforms; discard by " in said
        assert f"Do exactly this: wavestitch held ecg --preview {kept} --apply" in said
        assert shell.tables.head() == before
        done = shell.shown("--preview", other, "--apply")
        assert (done["choice"]["ids"], done["done"]["plan_id"] != "") == (["half"], True)
        assert "of 1 of these 2 waveforms changed since this discard was shown, first of half" in shell.refused(
            "--preview", kept, "--apply"
        )
        assert shell.states() == {"conflicting": ["conflict"], "half": ["discarded"], "parked": ["parked"]}

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (["discard", "half", "--why", "x", "--keep", "--apply"], "do it afterwards with --preview ID --apply"),
            (
                ["discard", "half", "--why", "x", "--preview", "0" * 32],
                "--preview says itself what, about which and why",
            ),
            *(
                (["--preview", "0" * 32, *more, "--apply"], "leave all but --apply and --json out")
                for more in (["--reason", "parked"], ["--source", "s"], ["--batch", "b"], ["--after", "a"], ["--all"])
            ),
            (["--preview", "0" * 32, "--apply"], f"stream ecg has no preview {'0' * 32}"),
        ],
    )
    def test_what_cannot_be_kept_or_was_not_is_refused(self, shell: Shell, words: list[str], says: str) -> None:
        assert says in shell.refused(*words)

    def test_an_error_is_json_where_json_is_wanted(self, shell: Shell) -> None:
        shell("discard", "half", "--json")
        assert '"error": "BadInput"' in shell.said

    def test_what_is_redriven_and_picked_is_published_from_the_table(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Stitched in this process, by what Spark runs in its own."""
        monkeypatch.setattr(cli_held, "DeploymentEdges", partial(DeploymentEdges, submit=stitch_here))
        said = shell("redrive", "parked", "--why", "the gate was wrong", "--apply")
        assert "done: head 3, 1 waveforms published" in said, said
        said = shell("pick", "conflicting", "--copy", "last", "--why", "the second is right", "--apply")
        assert "done: head 4, 1 waveforms published" in said, said
        assert shell.published() == {"parked": ONE + TWO, "conflicting": ONE + OTHER}
        assert shell.states() == {"conflicting": ["discarded"], "half": ["open"]}
