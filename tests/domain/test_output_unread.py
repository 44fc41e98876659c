"""What a command prints: where nobody reads it to its end, where there is no room for it, and by a script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.domain.maintenance_rig import STREAM, Rig

READERS = ["| true", "> /dev/full", ">&-", "2>&1 | true", "2> /dev/full", "> /dev/full 2>&1", ">&- 2>&-"]
"""Whoever reads stdout, stderr or both, and has gone, or has no room for it."""


def run_before(reader: str, script: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/bash", "-c", f'"$0" "$1" {reader}; exit ${{PIPESTATUS[0]}}', sys.executable, script],
        capture_output=True,
        text=True,
        cwd=folder,
        # What is not written at once is what a command may still fail by when it ends.
        env={**{k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}, "PYTHONPATH": str(ROOT)},
        check=False,
    )


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("reader", READERS)
def test_what_was_found_is_the_exit_code_also_where_nobody_reads_it_to_its_end(
    tmp_path: Path, reader: str, *, as_json: bool
) -> None:
    script = tmp_path / "report.py"
    script.write_text(
        "import time\nfrom pathlib import Path\nfrom wavestitch import cli_verify, terminal\n"
        "time.sleep(0.5)\n"  # the reader has gone by then
        "from typer import Exit\ntry:\n"
        f"    cli_verify._report({{'exit_code': 6, 'more': 'x' * 100_000}}, Path({str(tmp_path / 'kept.json')!r}), "
        f"{as_json}, show=lambda: terminal.out.print('x' * 100_000))\nexcept Exit as ended:\n"
        "    raise SystemExit(ended.exit_code)\n"
    )
    ran = run_before(reader, script, tmp_path)
    assert (ran.returncode, "Traceback" in ran.stderr, "Exception ignored" in ran.stderr) == (6, False, False), ran
    assert "keep it with --into" not in ran.stderr, "it is kept"
    assert json.loads((tmp_path / "kept.json").read_text())["exit_code"] == 6


def test_what_could_not_be_shown_is_said_also_where_it_is_little(tmp_path: Path) -> None:
    script = tmp_path / "report.py"
    script.write_text(
        "from pathlib import Path\nfrom wavestitch import cli_verify, terminal\nterminal.never_fail()\n"
        f"cli_verify._report({{'exit_code': 0}}, Path({str(tmp_path / 'kept.json')!r}), True, show=lambda: None)\n"
    )
    ran = run_before("> /dev/full", script, tmp_path)
    assert ran.returncode == 0
    assert "could not be shown (No space left on device); the whole report is in" in " ".join(ran.stderr.split())


@pytest.mark.parametrize("reader", READERS)
def test_an_error_has_its_exit_code_also_where_nobody_reads_it_as_json(tmp_path: Path, reader: str) -> None:
    script = tmp_path / "nowhere.py"
    script.write_text(
        "import sys, time\nfrom wavestitch import cli\n"
        "time.sleep(0.5)\n"  # the reader has gone by then
        "sys.argv = ['wavestitch', 'verify', 'ecg', '--json', '--into', '/']\ncli.main()\n"
    )
    ran = run_before(reader, script, tmp_path)
    assert (ran.returncode, "Traceback" in ran.stderr, "Exception ignored" in ran.stderr) == (2, False, False), ran
    assert "2>" in reader or "BadInput" in ran.stderr


@pytest.mark.parametrize("reader", READERS)
def test_what_cannot_be_shown_keeps_nobody_from_what_he_is_at(tmp_path: Path, reader: str) -> None:
    """A rewind that was done ended as one that failed, and was done twice by whoever said it again."""
    script = tmp_path / "works.py"
    script.write_text(
        "import time\nfrom pathlib import Path\nfrom wavestitch import terminal\n"
        "from wavestitch.console import ProgressBars\nterminal.never_fail()\n"
        "time.sleep(0.5)\n"  # the reader has gone by then
        "with ProgressBars() as bars:\n    bars.begin('read')\n    bars.say('x' * 100_000)\n"
        "terminal.out.print('x' * 100_000)\nprint('x' * 100_000)\nterminal.out.print_data({'x': 'y' * 100_000})\n"
        "Path('done').touch()\n"
    )
    ran = run_before(reader, script, tmp_path)
    assert (ran.returncode, "Traceback" in ran.stderr, "Exception ignored" in ran.stderr) == (0, False, False), ran
    assert (tmp_path / "done").exists()


def test_letters_that_a_terminal_does_not_have_are_named(tmp_path: Path) -> None:
    script = tmp_path / "says.py"
    script.write_text("from wavestitch import terminal\nterminal.never_fail()\nterminal.out.print('3 \\xb5V')\n")
    ran = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"},
        check=True,
    )
    assert ran.stdout == "3 \\xb5V\n"


def said(words: str) -> str:
    """A script that is this command; its log is in memory, and nobody waits for a broker."""
    return (
        "import sys\nfrom tests.fakes.fake_log import FakeLog\nfrom wavestitch import cli\n"
        "from wavestitch.batch.deployment import Deployment\nDeployment.log = FakeLog('t', 1)\n"
        f"sys.argv = ['wavestitch', *{words.split()}]\ncli.main()\n"
    )


def ran(folder: Path, words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", said(words)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "WAVESTITCH_CONFIG": str(folder / "wavestitch.toml")},
        check=False,
    )


def test_a_script_reads_one_document_whatever_fails(tmp_path: Path) -> None:
    Rig(tmp_path).publish("w")
    (tmp_path / "streams" / "broken.yaml").write_text("topic: t\ngroup: other\nnonsense: 1\n")
    every = ran(tmp_path, "maintain --json")
    found = json.loads(every.stdout)
    assert {one["stream"]: one.get("error") for one in found} == {"broken": "BadInput", STREAM: None}
    alone = ran(tmp_path, "maintain broken --json")
    assert (every.returncode, alone.returncode) == (2, 2)
    assert {"stream": "broken", **json.loads(alone.stdout)} in found


@pytest.mark.parametrize(
    ("words", "reader", "code"),
    [
        ("check --json", "> /dev/full", 74),
        ("batches ecg --json", "> /dev/full", 74),
        ("maintain ecg", "> /dev/full", 74),
        ("check", "| true", 0),
        ("maintain ecg --apply", "> /dev/full", 0),
        ("plan nobody", "> /dev/full", 2),
    ],
)
def test_a_script_hears_that_what_it_relies_on_is_lost(tmp_path: Path, words: str, reader: str, code: int) -> None:
    Rig(tmp_path).publish("w")
    script = tmp_path / "command.py"
    script.write_text(f"import time\ntime.sleep(0.5)\n{said(words)}")  # the reader has gone by then
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAVESTITCH_CONFIG", str(tmp_path / "wavestitch.toml"))
        ran = run_before(reader, script, tmp_path)
    assert ran.returncode == code, ran
    is_said = "not all of what was to be shown could be written (No space left on device)" in " ".join(
        ran.stderr.split()
    )
    assert is_said == ("full" in reader and code != 2)


def test_who_waits_for_us_to_read_at_his_pace_gets_all_of_it(tmp_path: Path) -> None:
    """A pipe that takes nothing for now is no reader that has gone."""
    script = tmp_path / "says.py"
    script.write_text(
        "from wavestitch import terminal\nterminal.never_fail()\nfor n in range(20_000):\n    print('x' * 40)\n"
    )
    ours, its = os.pipe()
    os.set_blocking(its, False)
    with (
        open(ours, "rb") as said,
        subprocess.Popen([sys.executable, script], stdout=its, env={**os.environ, "PYTHONPATH": str(ROOT)}) as running,
    ):
        os.close(its)
        time.sleep(1)
        assert len(said.read()) == 20_000 * 41
    assert running.returncode == 0


def test_who_looks_by_hand_is_told_what_is_new_and_what_to_do(tmp_path: Path) -> None:
    """There is no other log where a command runs."""
    Rig(tmp_path).define("topic: t\ngroup: g\nnonsense: 1\n")
    for _ in range(2):  # what cannot be looked at once may be so by chance
        looked = ran(tmp_path, "watch --json")
    (seen,) = json.loads(looked.stdout)
    assert (seen["told"], seen["delivered"]) == (True, True)
    assert f"{STREAM}: cannot be looked at, so nobody sees how close retention is" in " ".join(looked.stderr.split())
    assert "`wavestitch status` looks again" in " ".join(looked.stderr.split())
