"""The hostile corpus through everything that people are shown: what arrives is printable, one line a line, all text."""

from __future__ import annotations

import ast
import dataclasses
import io
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders.chunks import make_chunk, make_held
from tests.builders.heads import make_row
from tests.builders.ranges import span
from tests.conftest import ROOT
from tests.security.hostile_text import HOSTILE_TEXTS
from tests.stack.airflow_home import prepare_airflow, write_settings
from wavestitch import console, console_held, console_maintain, console_status, console_verify, terminal
from wavestitch.batch.compare import DefinitionCompared
from wavestitch.batch.plan import NothingToDo
from wavestitch.batch.results import BatchDone, Finished, OffsetsCommitted, Planned, Published
from wavestitch.batch.verify import Verified
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.definition_change import Change, Changed
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.harmless import in_shell, is_plain
from wavestitch.contracts.held import HeldChunk
from wavestitch.contracts.maintenance import ActionReport, Footprint, MaintenanceReport
from wavestitch.contracts.past_cost import Forecast
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stages import Told
from wavestitch.contracts.stream import Stream
from wavestitch.contracts.verification import Agreement, Compared

# What rich writes of its own to a terminal: colours, and nothing else.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
Show = Callable[[], None]


def held(text: str) -> HeldChunk:
    chunk = make_chunk()._replace(waveform_id=text, meta=text, evidence=text)
    return make_held(chunk, Reason.CONFLICT, evidence=text)


def row(text: str) -> BatchRow:
    return make_row(
        plan_id="a" * 32,
        kind=text,
        stream=text,
        reasons={text: 1},
        waveforms={"published": 2},
        seconds={"read": 1.0},
        note=text,
    )


def report(text: str) -> MaintenanceReport:
    action = ActionReport("held", text, 1, 1, examples=(text, text), kept=(text,), facts={text: 1})
    return MaintenanceReport("ecg", False, Footprint(), Footprint(), (action,), remarks=(text,))


def verified(text: str) -> Verified:
    one = Compared(text, Agreement.DIFFERS, text, (text,), text, (span(0, 1, 2),))
    return Verified(text, 1, 2, (), (), (), (), {"differs": 1}, (one,), (text,))


def compared(text: str) -> DefinitionCompared:
    one = Changed(text, Change.NEWLY_FAILING, text, (text,), text)
    return DefinitionCompared(text, 1, 2, (text,), (), (), (), {"newly failing": 1}, (one,), (text,))


def plan(text: str) -> Planned:
    told = (Told(text, text, text),)
    why = {Partition(0): text}
    return Planned(
        text, "ingest", text, 1, ((text,),), 5, 1, ((0, 0, 5),), why, 1, Forecast(2, 9, 9, 1.0), (text,), told
    )


def done(text: str) -> BatchDone:
    waveforms = dict.fromkeys(("published", "open", "quarantined"), 1)
    counts = dict.fromkeys(("read", "carried_in", "duplicate", "replay"), 1)
    figures = Published(text, 1, waveforms, counts, {text: 1}, True, (text,))
    return BatchDone(plan(text), Finished(text, figures), OffsetsCommitted(text, 0))


def shown_by(text: str) -> dict[str, Show]:
    status = {"stream": text, "problem": text, "remarks": [text]}
    check = {"settings": {"a": text[:1000]}, "streams": [text], "problems": [text], "remarks": [text]}
    return {
        "held": lambda: console.show_held([held(text)], [Reason.CONFLICT]),
        "plan": lambda: console.show_plan(plan(text)),
        "nothing to do": lambda: console.show_plan(NothingToDo(text, plan(text).stages)),
        "published": lambda: console.show_published(done(text)),
        "nothing done": lambda: console.show_published(NothingToDo(text)),
        "published without offsets": lambda: console.show_published(dataclasses.replace(done(text), committed=None)),
        "batches": lambda: console.show_batches([row(text)]),
        "show": lambda: console.show_batch(row(text)),
        "status": lambda: console_status.show_status([status]),
        "check": lambda: console.show_check(check),
        "maintain": lambda: console_maintain.show_maintenance([report(text)]),
        "verify": lambda: console_verify.show_verified(verified(text)),
        "compare": lambda: console_verify.show_compared(compared(text)),
        "an error": lambda: console.err.print(Refused(f"no {text}").message, highlight=False),
        "progress": lambda: console.ProgressBars().say(text),
    }


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a terminal of 120 columns gets, whichever module prints it."""
    found = io.StringIO()
    screen = terminal.HarmlessConsole(file=found, force_terminal=True, width=120)
    for module in (console, console_held, console_maintain, console_status, console_verify):
        for name in {"out", "err"} & set(vars(module)):
            monkeypatch.setattr(module, name, screen)
    return found


@pytest.fixture
def airflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the DAG files need to be imported: Airflow's environment, and settings without a stream."""
    prepare_airflow()
    (tmp_path / "streams").mkdir()
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(write_settings(tmp_path, streams=tmp_path / "streams")))


@pytest.mark.parametrize("output", shown_by(""))
@pytest.mark.parametrize("kind", HOSTILE_TEXTS)
def test_a_terminal_gets_printable_lines_and_colours_only(kind: str, output: str, written: io.StringIO) -> None:
    shown_by(HOSTILE_TEXTS[kind])[output]()
    lines = _COLOUR.sub("", written.getvalue()).split("\n")
    assert any(lines)
    for line in lines:
        assert is_plain(line), ascii(line[:300])
    assert len(written.getvalue()) < 200_000


def test_markup_of_strangers_is_shown_as_it_is_written(written: io.StringIO) -> None:
    console.show_held([held("[/red] [link=file:///etc/passwd]click[/link] :smile:")], [Reason.CONFLICT])
    assert "[/red] [link=file:///etc/passwd]click[/link] :smile:" in written.getvalue()
    assert "\x1b]8" not in written.getvalue()


FORGED = "w1\nhead 12: accepted by admin\n$ wavestitch maintain ecg --apply"


@pytest.mark.parametrize("output", shown_by(""))
def test_what_a_stranger_wrote_begins_no_line(output: str, written: io.StringIO) -> None:
    shown_by(FORGED)[output]()
    begun = [line.strip("│ ┃") for line in _COLOUR.sub("", written.getvalue()).split("\n")]
    assert not [line for line in begun if line.startswith(("head 12", "$ wavestitch"))]


def test_a_word_for_a_shell_is_that_word_and_no_shell_obeys_it(tmp_path: Path) -> None:
    words = ["$(touch x)", "a'b", "'; touch x; '", "\n'; touch x; '", "\\' \n", "`touch x`", "\n\\", "\n!a0", FORGED]
    words += [t[:300] for t in HOSTILE_TEXTS.values() if t and not re.search("[\0\ud800-\udfff]", t)]
    said = " ".join(in_shell(w) for w in words)
    assert is_plain(said)
    for shell in ("bash", "sh"):
        done = subprocess.run([shell, "-c", f"printf '%s\\0' {said}"], capture_output=True, cwd=tmp_path, check=True)
        found = done.stdout.split(b"\0")[:-1]
        for word, got in zip(words, found, strict=True):
            assert got.decode() == word or (shell == "sh" and not is_plain(word))
        assert not list(tmp_path.iterdir())


def test_the_command_for_the_next_page_is_in_one_piece_and_runs_nothing_of_a_stranger_s(written: io.StringIO) -> None:
    console_held.show_list("ecg", {}, [], after="$(touch x) " * 20)
    assert f"wavestitch held ecg --after='{'$(touch x) ' * 20}'" in written.getvalue()


_OURS = re.compile(
    r"(?:\w+\.){0,3}(?:name|stream|plan_id|partition|sequence|offset|p|at|a|end|first|last \+ 1|worst|log_start|places)"
    r"|named\(.*|accepting\(.*|over|on|stay|away|only|until|_places\(.*|table\.(?:name\(\)|split\(.*\))\[0\]"
    r"|in_shell\(.*|preview_id"
)
"""Names that only we give (a preview is found by its id, 32 hex digits, before anything is said of it), numbers (the
offsets that `accepting` names, too), and words of our own; whatever else goes through `in_shell`."""


def test_whatever_stands_in_a_command_that_is_offered_is_ours_or_is_quoted() -> None:
    found = []
    for path in (p for name in ("wavestitch", "consumers", "spark_apps", "dags") for p in (ROOT / name).rglob("*.py")):
        for node in (n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.JoinedStr)):
            said = ""
            for part in node.values:
                if isinstance(part, ast.FormattedValue) and "`" not in (said.rpartition("wavestitch ")[2] or "`"):
                    word = ast.unparse(part.value)
                    found += [] if _OURS.fullmatch(word) or "wavestitch " not in said else [(path, node.lineno, word)]
                said += str(part.value) if isinstance(part, ast.Constant) else "X"
    assert found == [], "quote these with `in_shell`, or say above why nobody else writes them"


def test_json_for_scripts_is_ascii_whatever_it_holds() -> None:
    for text in HOSTILE_TEXTS.values():
        said = json.dumps(Refused(f"no {text}").to_json())
        assert said.isascii()
        assert "\x1b" not in said


def test_one_place_makes_consoles_and_nothing_else_prints() -> None:
    """A second console would obey what the first one makes harmless."""
    for path in (ROOT / "wavestitch").rglob("*.py"):
        text = path.read_text()
        if path.name != "terminal.py":
            assert not re.search(r"rich\.console|from rich import|rich\.print", text), path
            assert not re.search(r"\bText[(.]", text), f"{path}: `lines` and `coloured` of terminal.py make texts"
        prints = [line for line in text.splitlines() if re.search(r"(?<![.\w])print\(", line)]
        assert all("json.dumps" in line for line in prints), (path, prints)


@pytest.mark.parametrize("kind", HOSTILE_TEXTS)
@pytest.mark.usefixtures("airflow")
def test_a_dag_s_page_shows_hostile_text_as_code_and_obeys_none_of_it(kind: str) -> None:
    from dags.ingest import describe_stream, make_broken_dag  # noqa: PLC0415

    text = HOSTILE_TEXTS[kind]
    for page in (
        # Declared past YAML, which refuses some of these texts: whatever gets through must do no harm.
        describe_stream(Stream(name="ecg", topic="t", group="g", description=text)),
        str(make_broken_dag("ecg", f"streams/ecg.yaml: {text}").doc_md),
    ):
        assert all(is_plain(line) for line in page.split("\n"))
        outside = re.sub(r"`[^`\n]*`", "", page)
        for part in ("<script", "](", "onerror", "{{", "$(", "cmd", "\n- item"):
            assert part not in outside


@pytest.mark.parametrize("kind", HOSTILE_TEXTS)
@pytest.mark.usefixtures("airflow")
def test_a_task_s_log_gets_one_line_a_message(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    from wavestitch.flows.batch_tasks import log_line  # noqa: PLC0415

    with caplog.at_level("INFO"):
        log_line(f"partition 0: {HOSTILE_TEXTS[kind]}")
    assert all(is_plain(r.getMessage()) for r in caplog.records)


@pytest.mark.parametrize("kind", HOSTILE_TEXTS)
def test_data_docs_show_hostile_text_as_text(kind: str, tmp_path: Path) -> None:
    from tests.security.seen_tags import tags_and_links  # noqa: PLC0415
    from wavestitch.contracts.stream import Expectation  # noqa: PLC0415
    from wavestitch.contracts.verdict import Verdict  # noqa: PLC0415
    from wavestitch.validation.docs import write_index  # noqa: PLC0415
    from wavestitch.validation.outcome import Outcome  # noqa: PLC0415

    text = HOSTILE_TEXTS[kind]
    expectation = Expectation(type="expect_table_row_count_to_equal", kwargs={"value": 1})
    outcome = Outcome(expectation, True, False, text, {text: text})
    verdict = Verdict({text: (text,)}, (text,), (text,), rows=1, expectations=1)
    write_index(tmp_path / "docs", verdict, [outcome], run_name=text)
    page = (tmp_path / "docs" / "index.html").read_text(encoding="utf-8")
    tags, links = tags_and_links(page)
    assert not tags & {"script", "img", "iframe", "svg", "link"}
    assert not links
    assert len(page) < 200_000
    assert all(is_plain(line) for line in page.split("\n"))


def test_no_digit_stands_behind_an_escape_which_some_shells_would_take_for_a_part_of_it() -> None:
    """ksh reads as many digits as there are: `\\x1b3` would be one character there."""
    for text in ("\x1b31mred", "a\n0", "\u202ebeef", "\x9bF00"):
        assert not re.search(r"\\x[0-9a-f]{2}[0-9a-fA-F]", in_shell(text))
