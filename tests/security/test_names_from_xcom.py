"""An operator who may edit XComs, or files in a plan's folder, names what a step opens: nothing else is ever opened."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.deployment_rig import STREAM, plan_on
from tests.hostile.kind import chunked
from tests.hostile.landed_deployment import FakeDeployment, landed_edges, make_landed_deployment
from tests.peak_memory import forget_peak, peak_rss
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.results import Read, Reassembled, Validated
from wavestitch.batch.steps import step_publish, step_read, step_reassemble, step_validate
from wavestitch.contracts.errors import Altered, BadInput, WavestitchError
from wavestitch.contracts.quantities import Partition

PLAIN = "report-0123456789abcdef0123456789abcdef.json"
NAMES = [
    "/dev/zero",
    "/etc/hostname",
    "../../../elsewhere.json",
    "../" + PLAIN,
    "./" + PLAIN,
    "plan.json",
    "verdict-0123456789abcdef0123456789abcdef.json",
    "report-0123456789ABCDEF0123456789ABCDEF.json",
    PLAIN + "\n",
    "report-0123456789abcdef0123456789abcdef.json/../plan.json",
    "",
]


class Under:
    """A batch that is read and stitched, and not validated."""

    def __init__(self, folder: Path) -> None:
        whole = make_landed_deployment(
            folder, stream_yaml="reading: {min_slice: 4, workers: 1}\nlimits: {max_clock_skew: 19000 d}\n", partitions=1
        )
        assert isinstance(whole.deployment, FakeDeployment)
        for n, record in enumerate(chunked("w", 8)):
            whole.deployment.memory.append(
                Partition(0), 1_767_225_600_000 + n, record.key, record.headers, record.value
            )
        self.edges: DeploymentEdges = landed_edges(whole.deployment)
        self.plan_id = plan_on(self.edges).plan_id
        read = step_read(self.edges, self.plan_id)
        assert isinstance(read, Read)
        made = step_reassemble(self.edges, self.plan_id, read)
        assert isinstance(made, Reassembled)
        self.read, self.made = read, made
        self.folder = whole.deployment.settings.landing / STREAM / self.plan_id

    def validated(self, report: str) -> Any:
        return step_validate(self.edges, self.plan_id, Reassembled(report, self.read.receipts, 1, 0.0))

    def renamed(self, change: Callable[[dict[str, Any]], Any]) -> str:
        """The report with other contents, under the name that is true of them."""
        found = json.loads((self.folder / str(self.made.report)).read_text())
        change(found)
        folder = self.edges._folder(self.plan_id)
        return folder.write_digested("report", json.dumps(found)).name


@pytest.fixture(scope="module")
def under(tmp_path_factory: pytest.TempPathFactory) -> Under:
    """Of all tests that leave its files as they are."""
    return Under(tmp_path_factory.mktemp("batch") / "d")


@pytest.fixture
def own(tmp_path: Path) -> Under:
    return Under(tmp_path / "d")


@pytest.mark.parametrize("name", NAMES)
def test_a_report_is_named_by_a_closed_pattern(under: Under, name: str) -> None:
    with pytest.raises(BadInput, match="is not the name of a report that a step leaves"):
        under.validated(name)


@pytest.mark.parametrize("name", NAMES)
def test_receipts_and_verdicts_are_too(under: Under, name: str) -> None:
    with pytest.raises(BadInput, match="is not the name of a receipt that a step leaves"):
        step_reassemble(under.edges, under.plan_id, Read((name,), 0, 0, 0.0))
    checked = Validated(name.replace("verdict", "report"), False, False, "", 0, (), 0.0)
    with pytest.raises(BadInput, match="is not the name of a verdict that a step leaves"):
        step_publish(under.edges, under.plan_id, under.made, checked)


@pytest.mark.parametrize("what", ["link", "pipe", "zeros", "folder"])
def test_a_report_that_is_no_plain_file_is_not_opened(own: Under, what: str) -> None:
    path = own.folder / PLAIN
    if what == "link":
        path.symlink_to("/etc/hostname")
    elif what == "zeros":
        path.symlink_to("/dev/zero")
    elif what == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(Altered, match="is no plain file"):
        own.validated(PLAIN)


def test_a_report_that_is_larger_than_any_of_ours_is_not_read(own: Under) -> None:
    with (own.folder / PLAIN).open("wb") as file:
        file.truncate(4 << 30)  # of holes: it takes no room
    before = forget_peak()
    with pytest.raises(Altered, match="has 4096 MiB, allowed are"):
        own.validated(PLAIN)
    assert peak_rss() - before < 64 << 20


def test_a_report_whose_bytes_are_not_those_of_its_name_is_altered(own: Under) -> None:
    (own.folder / PLAIN).write_text("{}")
    with pytest.raises(Altered, match="is not as it was written"):
        own.validated(PLAIN)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("file", "../../../../evil.parquet"),
        ("file", "/etc/passwd"),
        ("file", "y.parquet"),
        ("stitched", "/dev/zero"),
        ("stitched", "../x-" + "0" * 32 + ".arrow"),
        ("stitched", "plan.json"),
    ],
)
def test_files_that_a_report_names_are_checked_as_well(under: Under, field: str, value: str) -> None:
    name = under.renamed(lambda found: found["results"][0].update({field: value}))
    with pytest.raises(BadInput, match="is not the name of a"):
        under.validated(name)


def test_a_report_of_another_plan_is_refused(under: Under) -> None:
    name = under.renamed(lambda found: found.update(plan_id="f" * 32))
    with pytest.raises(BadInput, match="the stitch report is of plan ffff"):
        under.validated(name)


@pytest.mark.parametrize("which", ["stitched", "file"])
def test_a_link_in_place_of_a_file_that_a_report_names_is_refused(own: Under, which: str, tmp_path: Path) -> None:
    result = json.loads((own.folder / str(own.made.report)).read_text())["results"][0]
    checked = own.validated(str(own.made.report))
    folder = own.folder if which == "stitched" else own.edges.tables.data_folder()
    path = folder / result[which]
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    with pytest.raises(WavestitchError, match="is no plain file"):
        step_publish(own.edges, own.plan_id, own.made, checked)
