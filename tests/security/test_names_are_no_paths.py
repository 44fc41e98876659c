"""No name that came from elsewhere ever becomes a path (check 4): streams, plans, files, pages, topics, waveforms."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.security.hostile_names import PATHS
from tests.stack.airflow_home import write_settings
from wavestitch.batch.deployment import Deployment
from wavestitch.cli import app
from wavestitch.contracts.errors import BadInput, Refused, WavestitchError
from wavestitch.contracts.receipt import RECEIPT_FORMAT, receipt_from_json
from wavestitch.contracts.stream import parse_stream
from wavestitch.settings import load_settings, load_stream
from wavestitch.ui.docs_files import find_page

PLAN = "a" * 32
NEVER_A_PLAN = [p for p in PATHS if p] + ["A" * 32, "a" * 31, "a" * 33, PLAN + "\n", "\u0430" * 32, "../" + "a" * 29]


def _short(name: str) -> str:
    return ascii(name)[:40]


COMMANDS: list[tuple[str, Callable[[str], Sequence[str]]]] = [
    ("plan", lambda name: ["plan", "--", name]),
    ("run", lambda name: ["run", "--", name]),
    ("run --plan", lambda name: ["run", "--plan", PLAN, "--", name]),
    ("batches", lambda name: ["batches", "--", name]),
    ("held", lambda name: ["held", "--", name]),
    ("rewind", lambda name: ["rewind", "--to", "latest", "--", name]),
    ("undo", lambda name: ["undo", "--", name]),
    ("undo --plan", lambda name: ["undo", "--plan", name, "--", "ecg"]),
    ("produce", lambda name: ["produce", "--", name, "x.npz"]),
]


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    """A stream, and beside the landing a folder that a way up would lead to."""
    (tmp_path / "streams").mkdir()
    (tmp_path / "streams" / "ecg.yaml").write_text("topic: t\ngroup: g\n")
    (tmp_path / "other" / PLAN).mkdir(parents=True)
    (tmp_path / "other" / PLAN / "plan.json").write_text("{}")
    (tmp_path / "other.yaml").write_text("topic: t\ngroup: g\n")
    config = write_settings(tmp_path, streams=tmp_path / "streams")
    return Deployment(load_settings({"WAVESTITCH_CONFIG": str(config)}))


def _tree(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if not p.name.startswith("catalog.db")}


@pytest.mark.parametrize("name", PATHS, ids=_short)
@pytest.mark.parametrize(("command", "argv"), COMMANDS, ids=[c for c, _ in COMMANDS])
def test_a_stream_on_the_command_line_is_one_that_is_declared(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, argv: Any, name: str
) -> None:
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(tmp_path / "wavestitch.toml"))
    before = _tree(tmp_path)
    done = CliRunner().invoke(app, argv(name))
    assert isinstance(done.exception, BadInput), (command, done.output, done.exception)
    assert len(done.exception.message) < 5000
    assert _tree(tmp_path) == before


@pytest.mark.parametrize("name", PATHS, ids=_short)
def test_a_stream_of_that_name_has_no_folder_no_table_and_no_pages(deployment: Deployment, name: str) -> None:
    for act in (
        deployment.tables,
        lambda n: deployment.folder(n, PLAN),
        lambda n: deployment.docs_folder(n, PLAN),
        deployment.stream,
    ):
        with pytest.raises(BadInput, match=r"is not the name of a stream|there is no stream"):
            act(name)


@pytest.mark.parametrize("plan_id", NEVER_A_PLAN, ids=_short)
def test_a_plan_is_32_hex_digits_and_nothing_else(deployment: Deployment, plan_id: str) -> None:
    with pytest.raises(BadInput, match="is not a plan id"):
        deployment.folder("ecg", plan_id)
    with pytest.raises(BadInput, match="is not a plan id"):
        deployment.docs_folder("ecg", plan_id)


@pytest.mark.parametrize("name", PATHS, ids=_short)
def test_a_file_that_a_step_names_lies_in_its_plan_s_folder(deployment: Deployment, name: str) -> None:
    """Such names travel through XCom, which others may write."""
    folder = deployment.folder("ecg", PLAN)
    folder.path.mkdir(parents=True)
    with pytest.raises(WavestitchError, match="is not the name of a file that a step leaves"):
        folder.read_digested(name)


def test_no_link_leads_out_of_the_landing(deployment: Deployment, tmp_path: Path) -> None:
    landing = deployment.settings.landing
    landing.mkdir()
    (landing / "ecg").symlink_to(tmp_path / "other")
    with pytest.raises(BadInput, match="is a link, and may lead anywhere"):
        deployment.folder("ecg", PLAN)
    (landing / "ecg").unlink()
    (landing / "ecg").mkdir()
    (landing / "ecg" / PLAN).symlink_to(tmp_path / "other" / PLAN)
    with pytest.raises(BadInput, match="is a link, and may lead anywhere"):
        deployment.folder("ecg", PLAN)


def test_a_whole_landing_may_be_a_link_because_its_owner_says_where_it_is(
    deployment: Deployment, tmp_path: Path
) -> None:
    (tmp_path / "big-disk").mkdir()
    deployment.settings.landing.symlink_to(tmp_path / "big-disk")
    assert deployment.folder("ecg", PLAN).path == deployment.settings.landing / "ecg" / PLAN


@pytest.mark.parametrize("name", PATHS, ids=_short)
def test_a_receipt_names_its_landing_file_and_no_other(name: str) -> None:
    slice_ = {
        "partition": 0,
        "start": 0,
        "end": 1,
        "file": name,
        "file_bytes": 1,
        "digest": "0" * 32,
        "index_digest": "0" * 32,
    }
    slice_ |= {"records": 1, "payload_bytes": 1, "seen_ms": 0, "holes": [], "seconds": 0.1, "written": []}
    receipt = {"format": RECEIPT_FORMAT, "plan_id": PLAN, "unit": 0, "slices": [slice_], "seconds": 0.1}
    with pytest.raises(BadInput, match="is not the name of its landing file"):
        receipt_from_json(json.dumps(receipt))


@pytest.mark.parametrize("name", [p for p in PATHS if p not in ("-rf", "CON", "ECG")], ids=_short)
def test_a_topic_and_a_group_are_kafka_names(name: str) -> None:
    for text in ({"topic": name, "group": "g"}, {"topic": "t", "group": name}):
        with pytest.raises(BadInput, match="allowed are letters"):
            parse_stream(json.dumps(text), name="ecg")


@pytest.mark.parametrize("name", PATHS, ids=_short)
def test_a_stream_s_file_is_looked_up_and_never_opened_by_a_name_from_elsewhere(
    deployment: Deployment, name: str
) -> None:
    with pytest.raises(BadInput, match="known are: ecg"):
        load_stream(deployment.settings, name)


@pytest.mark.parametrize("name", PATHS, ids=_short)
def test_a_page_is_looked_up_by_each_part_of_its_name(tmp_path: Path, name: str) -> None:
    page = tmp_path / "docs" / "ecg" / PLAN / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("a page")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "index.html").write_text("not for you")
    docs = tmp_path / "docs"
    assert find_page(docs, "ecg", PLAN, "index.html") == page
    for stream, plan_id, part in ((name, PLAN, "index.html"), ("ecg", name, "index.html"), ("ecg", PLAN, name)):
        assert find_page(docs, stream, plan_id, part) is None


def test_a_range_of_offsets_is_ascii_digits(deployment: Deployment) -> None:
    from wavestitch.batch.request import parse_range  # noqa: PLC0415

    for text in ("\u0660:0-1", "0:\u0661-\u0662", "0:0-1\0", "0:0-1;x", "0:-1-5", "0:0-" + "9" * 400):
        with pytest.raises((BadInput, Refused)):
            parse_range(text)
