"""The blocks of docs/operations.md that say what to type for a task are typed, line by line, and do what is said there.

On real tables, folders and gate; the log alone is in memory, and Spark's task runs in this process.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spark_apps.in_process import stitch_here
from tests.builders.sending import send_chunk
from tests.conftest import ROOT
from tests.deployment_rig import STREAM
from tests.hostile.landed_deployment import (
    FakeDeployment,
    declare,
    make_landed_deployment,
    reader_of,
    run_landed_batch,
)
from wavestitch import cli, cli_held, cli_promote, cli_rewind, cli_undo, cli_verify, cli_waveforms
from wavestitch.batch import comparing_edges, run
from wavestitch.batch.comparing_edges import VerifyingEdges
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.contracts.errors import DataLost, GateClosed
from wavestitch.contracts.quantities import Offset, Partition

TEXT = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
BY_TASK = TEXT.partition("## By task\n")[2].partition("\n## ")[0] + "\n### "
TASKS = dict(re.findall(r"^### ([^\n]+)\n(.*?)(?=^### )", BY_TASK, re.MULTILINE | re.DOTALL))
TUESDAY_MS = int(datetime(2026, 11, 17, 12, tzinfo=UTC).timestamp() * 1000)
DAY_MS = 86_400_000
YAML = "limits: {max_clock_skew: 36500 d}\nreading: {min_slice: 4}\n"
FEW = "expectations: [{type: expect_table_row_count_to_be_between, kwargs: {max_value: 1}}]\n"
ONE, TWO, OTHER = b"\1\0", b"\2\0", b"\3\0"


class Operator:
    """Somebody with a terminal, and a stream in memory."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.whole = make_landed_deployment(folder / "deployment", stream_yaml=YAML, partitions=1)
        self.capsys, self._monkeypatch = capsys, monkeypatch
        self.names = {"ecg": STREAM}
        monkeypatch.setenv("WAVESTITCH_CONFIG", str(self.whole.folder / "wavestitch.toml"))
        monkeypatch.setenv("COLUMNS", "400")
        fake, whole = self.fake, self.whole

        class Batch(DeploymentEdges):
            def __init__(self, _deployment: Any, stream: str, **_how: Any) -> None:
                super().__init__(fake, stream, read=reader_of(fake), submit=stitch_here)

        class Verifying(VerifyingEdges):
            def __init__(self, _deployment: Any, stream: str, *, definition: Any = None) -> None:
                super().__init__(fake, stream, definition=definition, read=reader_of(fake))

        monkeypatch.setattr(comparing_edges, "VerifyingEdges", Verifying)
        for module in (cli, cli_held, cli_promote, cli_rewind, cli_undo, cli_verify, cli_waveforms):
            monkeypatch.setattr(module, "Deployment", lambda *_: whole.deployment)
        for module in (cli, cli_held, cli_promote, cli_rewind, cli_undo, run):
            monkeypatch.setattr(module, "DeploymentEdges", Batch)

    @property
    def fake(self) -> FakeDeployment:
        assert isinstance(self.whole.deployment, FakeDeployment)
        return self.whole.deployment

    @property
    def tables(self) -> Any:
        return self.fake.tables(STREAM)

    def send(
        self, waveform_id: str, *values: bytes, start_ms: int = TUESDAY_MS, first: int = 0, count: int = 2
    ) -> None:
        for seq, value in enumerate(values, start=first):
            send_chunk(self.fake.memory, waveform_id, seq, value, at_ms=TUESDAY_MS, start_ms=start_ms, count=count)

    def ingest(self) -> None:
        run_landed_batch(self.fake)

    def stop_at_the_gate(self) -> None:
        with pytest.raises(GateClosed) as closed:
            self.ingest()
        self.names["PLAN"] = closed.value.facts["plan_id"]

    def type_block(self, task: str, number: int = 0) -> list[tuple[int, str]]:
        """Each line's exit code, and what it said."""
        return [self.type_line(line) for line in blocks_of(task)[number]]

    def type_line(self, line: str) -> tuple[int, str]:
        words = [self.names.get(word, word) for word in shlex.split(line)]
        self._monkeypatch.setattr(sys, "argv", words)
        code = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = self.capsys.readouterr()
        return code, " ".join((out + err).split())

    def published(self) -> list[str]:
        table = self.tables.waveforms()
        return sorted(table.scan(selected_fields=("waveform_id",)).to_arrow().column(0).to_pylist())

    def position(self) -> int:
        head = self.tables.head()
        assert head is not None
        return int(head.positions[Partition(0)].next_offset)


def blocks_of(task: str) -> list[list[str]]:
    return [block.splitlines() for block in re.findall(r"```sh\n(.*?)\n```", TASKS[task], re.DOTALL)]


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Operator:
    return Operator(tmp_path, monkeypatch, capsys)


def done(said: list[tuple[int, str]]) -> list[str]:
    assert [code for code, _ in said] == [0] * len(said), said
    return [text for _, text in said]


def reprocess(operator: Operator) -> None:
    for name, day in (("monday", -1), ("tuesday", 0)):
        operator.send(name, ONE, TWO, start_ms=TUESDAY_MS + day * DAY_MS)
    done(operator.type_block("Reprocess last Tuesday"))
    assert (operator.published(), operator.position()) == (["tuesday"], 0)


def read_again(operator: Operator) -> None:
    operator.send("w", ONE, TWO)
    operator.ingest()
    shown, moved, back = done(operator.type_block("Read everything again"))
    assert "--apply" in shown
    assert (operator.published(), operator.position()) == (["w"], 0)
    operator.ingest()
    assert (operator.published(), operator.position()) == (["w"], 2)
    assert moved
    assert "rewind" in back


def retention(operator: Operator) -> None:
    task = "Retention is about to pass me, or has"
    operator.send("first", ONE, TWO)
    done(operator.type_block(task))
    assert operator.position() == 2
    operator.send("lost", ONE, TWO)
    operator.send("kept", ONE, TWO)
    operator.fake.memory.retain_from(Partition(0), Offset(4))
    with pytest.raises(DataLost, match="retention has overtaken"):
        operator.ingest()
    done(operator.type_block(task, 1))
    assert (operator.published(), operator.position()) == (["first", "kept"], 6)


def validation(operator: Operator) -> None:
    task = "A batch failed validation"
    declare(operator.whole, YAML + FEW)
    for name in ("a", "b"):
        operator.send(name, ONE, TWO)
    operator.stop_at_the_gate()
    done(operator.type_block(task, 2))
    assert operator.type_line(f"wavestitch run ecg --plan {operator.names['PLAN']}")[0] == 4, "it was given up"
    operator.stop_at_the_gate()
    declare(operator.whole, YAML + "expectations: []\n")
    done(operator.type_block(task, 1))
    assert (operator.published(), operator.position()) == (["a", "b"], 4)
    declare(operator.whole, YAML + FEW)
    for name in ("c", "d"):
        operator.send(name, ONE, TWO)
    operator.stop_at_the_gate()
    done(operator.type_block(task, 0))
    assert (operator.published(), operator.position()) == (["a", "b", "c", "d"], 8)
    assert operator.tables.head().note == "gate: accept; two sites were down"


def two_truths(operator: Operator) -> None:
    task = "Two truths about one chunk"
    operator.names["ID"] = "two"
    operator.send("two", ONE, TWO)
    operator.send("two", OTHER, first=1)
    operator.ingest()
    given_up, back = done(operator.type_block(task, 1))
    assert given_up
    assert back
    listed, shown, _ = done(operator.type_block(task, 0))
    assert "two" in listed
    assert "conflict" in shown
    assert operator.published() == ["two"]


def right(operator: Operator) -> None:
    operator.send("w", ONE, TWO)
    operator.ingest()
    _, verified = done(operator.type_block("Is the table right?"))
    assert "the table says what the log says: 1 same" in verified


def another_expectation(operator: Operator) -> None:
    operator.send("w", ONE, TWO)
    operator.ingest()
    draft = operator.whole.folder / "streams" / "drafts" / f"{STREAM}.yaml"
    draft.parent.mkdir()
    limits = "limits: {max_clock_skew: 36500 d, max_chunks: 1}\n"
    draft.write_text(f"topic: {operator.whole.topic}\ngroup: {operator.whole.group}\n{limits}")
    ((code, said),) = operator.type_block("What would another expectation do?")
    assert (code, operator.published()) == (6, ["w"])
    assert "1 newly failing" in said


def publish_again(operator: Operator) -> None:
    task = "Publish Tuesday again by a new definition"
    operator.send("old", ONE, TWO)
    operator.ingest()
    operator.send("new", ONE, count=1)
    declare(operator.whole, "limits: {max_clock_skew: 36500 d, max_chunks: 1}\n")
    operator.ingest()
    look, do, undo = blocks_of(task)[0]
    code, shown = operator.type_line(look)
    assert (code, operator.published()) == (0, ["new", "old"])
    assert "0 replaced, 0 newly published, 1 taken out" in shown
    operator.names["PREVIEW"] = shown.partition("--preview ")[2].split()[0]
    assert "done: head" in done([operator.type_line(do)])[0]
    assert (operator.published(), operator.position()) == (["new"], 3)
    (said,) = done([operator.type_line(undo)])
    number = said.partition("--of ")[2].split()[0]
    assert all(cell in said for cell in ("puts 1 rows back as they were,", "and takes 0 out;"))  # a table's lines
    assert "done: head" in done([operator.type_line(f"wavestitch undo ecg --of {number} --apply")])[0]
    assert operator.published() == ["new", "old"]


DONE: dict[str, Callable[[Operator], None]] = {
    "Reprocess last Tuesday": reprocess,
    "Read everything again": read_again,
    "Retention is about to pass me, or has": retention,
    "A batch failed validation": validation,
    "Two truths about one chunk": two_truths,
    "Is the table right?": right,
    "What would another expectation do?": another_expectation,
    "Publish Tuesday again by a new definition": publish_again,
}


@pytest.mark.parametrize("task", DONE)
def test_what_the_page_says_to_type_does_what_it_says(task: str, operator: Operator) -> None:
    DONE[task](operator)


def test_every_task_of_the_page_is_typed() -> None:
    assert list(DONE) == list(TASKS)
    assert all(line.startswith("wavestitch ") for task in TASKS for block in blocks_of(task) for line in block)
