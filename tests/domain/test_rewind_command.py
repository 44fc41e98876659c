"""`wavestitch rewind --keep`, then `--preview ID --apply`: by the command line itself, over real tables and folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.builders.records import letter, metadata
from tests.deployment_rig import STREAM
from tests.hostile.landed_deployment import FakeDeployment, declare, make_landed_deployment, run_landed_batch
from wavestitch import cli_rewind, terminal
from wavestitch.cli import app
from wavestitch.contracts.quantities import Partition

T = 1_767_614_400_000


class Shell:
    """The command line of one user after the other, over a stream of which two waveforms are published."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self.rig = make_landed_deployment(folder, stream_yaml="", partitions=1)
        assert isinstance(self.rig.deployment, FakeDeployment)
        self.deployment = self.rig.deployment
        patch.setattr(cli_rewind, "Deployment", lambda: self.deployment)
        patch.setattr(terminal.out, "width", 400)
        self.send("w", "x")

    def send(self, *names: str) -> None:
        for name in names:
            one = letter(name, 0, b"\x01\x00", meta=metadata(T, sample_count=None), count=1)
            self.deployment.memory.append(Partition(0), T, one.key, one.headers, one.value)
        run_landed_batch(self.deployment)

    def position(self) -> int:
        head = self.deployment.tables(STREAM).head()
        assert head is not None
        return int(head.positions[Partition(0)].next_offset)

    def __call__(self, user: str, *words: str) -> str:
        self._patch.setattr(cli_rewind.getpass, "getuser", lambda: user)
        done = CliRunner().invoke(app, ["rewind", STREAM, *words])
        said = " ".join(f"{done.output} {done.exception or ''}".split())
        self.code = done.exit_code
        return said

    def keep(self, user: str, to: str) -> dict[str, Any]:
        return dict(json.loads(self(user, "--to", to, "--why", "a bad day", "--keep", "--json")))


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(tmp_path, monkeypatch)


def test_what_was_kept_is_done_as_it_was_shown_after_an_ingest_and_by_somebody_else(shell: Shell) -> None:
    kept = shell.keep("ann", "shift:-1")
    assert kept["targets"] == {"0": 1}
    assert not kept["applied"]
    shell.send("y")
    shown = shell("bob", "--preview", kept["preview_id"])
    assert "1 offsets are read again" in shown
    assert f"Do exactly this: wavestitch rewind {STREAM} --preview {kept['preview_id']} --apply" in shown
    assert shell.position() == 3
    done = shell("bob", "--preview", kept["preview_id"], "--apply")
    assert shell.position() == 1, "not where a shift from today's position leads: where it was shown to lead"
    head = shell.deployment.tables(STREAM).head()
    assert head is not None
    assert head.note == "rewind to shift:-1 by ann, approved by bob: a bad day"
    assert f"undo: wavestitch rewind {STREAM} --to undo:{head.sequence}" in done
    assert "the preview is void: somebody rewound since" in shell("bob", "--preview", kept["preview_id"], "--apply")


def test_where_the_stream_wants_another_person_who_kept_it_does_not_apply_it(shell: Shell) -> None:
    declare(shell.rig, "rewind_approval: other\n")
    kept = shell.keep("ann", "earliest")["preview_id"]
    assert "asked for by ann and approved by ann; the stream says rewind_approval: other" in shell(
        "ann", "--preview", kept, "--apply"
    )
    assert shell.position() == 2
    shell("bob", "--preview", kept, "--apply")
    assert shell.position() == 0


def test_what_somebody_rejected_is_shown_and_done_to_nobody_any_more(shell: Shell) -> None:
    kept = shell.keep("ann", "earliest")["preview_id"]
    assert "rejected by eve: nobody does it any more" in shell("eve", "--preview", kept, "--reject", "--why", "no")
    for words in (["--apply"], []):
        assert "was rejected by eve (no), which stands" in shell("bob", "--preview", kept, *words)
        assert shell.code != 0
    assert shell.position() == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "say where to go (--to), or what was kept (--preview)"),
        (["--preview", "0" * 32, "--to", "earliest"], "--preview says itself where to and why"),
        (["--preview", "0" * 32], f"stream {STREAM} has no preview {'0' * 32}"),
        (["--preview", "../x"], "is not the id of a preview"),
        (["--preview", "../x", "--reject"], "is not the id of a preview"),
        (["--preview", "0" * 32, "--reject"], f"stream {STREAM} has no preview {'0' * 32}"),
        (["--reject"], "--reject goes with --preview ID"),
        (["--preview", "0" * 32, "--reject", "--apply"], "--reject goes with --preview ID"),
        (["--to", "earliest", "--keep", "--apply"], "do it afterwards with --preview ID --apply"),
        (["--to", "rebuilt", "--keep", "--held", "7"], "--held is looked for anew each time"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_can_be(shell: Shell, words: list[str], says: str) -> None:
    assert says in shell("ann", *words)
    assert shell.code != 0
    assert shell.position() == 2
