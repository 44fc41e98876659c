"""What an earlier version wrote is read by this one, whichever step of a batch it had come to. I1 to I4, I6."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders.published_bytes import published_bytes
from tests.faults.local_faults_watch import run_alone
from tests.faults.power_loss import edges_of, no_bug
from tests.versions.written import HERE, LEFT, load_log, unpacked
from wavestitch import write_once
from wavestitch.batch import work_folder
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.held_decision import plan_held
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.plan import NothingToDo
from wavestitch.batch.results import Read, Reassembled, Validated, result_from_json
from wavestitch.batch.run import RunOptions, Silent, run_batch
from wavestitch.batch.steps import step_commit_offsets, step_publish, step_read, step_reassemble, step_validate
from wavestitch.batch.stream_state import load_state
from wavestitch.contracts import position
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.tables.maintenance.verify_waveforms import verify_waveforms

VERSIONS = sorted(p.name.removesuffix(".tar.gz") for p in HERE.glob("*.tar.gz"))
STEPS = ("plan", "read", "reassemble", "validate")


def go_on(place: Path, after: str, plant: Callable[[], None]) -> None:
    """This version does the steps after that one, and all that comes then; raises where anything is not as it was."""
    plant()
    left = json.loads((place / LEFT).read_text())
    log = load_log(left)
    edges = edges_of(place, log)
    _finish(edges, left, after)
    while not isinstance(run_batch(edges_of(place, log), RunOptions(), watcher=Silent()), NothingToDo):
        pass
    found = published_bytes(edges.tables)
    assert sorted((i, samples.hex()) for i, samples in found) == sorted(left["whole"].items())
    table = edges.tables.waveforms()
    assert table is not None
    assert not verify_waveforms(table).altered
    # That version made its tables with other properties than this one: what is said of them has to be true of it, too.
    assert not [said for said in edges.tables.remarks() if "was made" in said]
    head = edges.tables.head()
    assert head is not None
    assert {p: at.next_offset for p, at in head.positions.items()} == {p: at.end for p, at in log.partitions.items()}
    assert [b.sequence for b in edges.tables.batches()] == list(range(head.sequence, 0, -1))
    held = load_state(edges.tables, topic_id=log.topic_id).held
    assert {h.chunk.waveform_id for h in held} == {*left["held"], None}
    shown = plan_held(edges, HeldAction.DISCARD, Selection(ids=tuple(left["held"])), who="a test", why="to see")
    edges.begin(shown.plan)
    run_batch(edges_of(place, log), RunOptions(plan_id=shown.plan.plan_id), watcher=Silent())


def _finish(edges: DeploymentEdges, left: dict[str, dict[str, dict[str, object]]], after: str) -> None:
    plan_id, kept = str(left["plan"]), left["results"]
    done = STEPS[: STEPS.index(after) + 1]
    read = result_from_json(kept["read"], Read) if "read" in done else step_read(edges, plan_id)
    made = (
        result_from_json(kept["reassemble"], Reassembled)
        if "reassemble" in done
        else step_reassemble(edges, plan_id, read)
    )
    checked = (
        result_from_json(kept["validate"], Validated) if "validate" in done else step_validate(edges, plan_id, made)
    )
    step_publish(edges, plan_id, made, checked)
    step_commit_offsets(edges, plan_id)


def test_there_is_something_of_a_version_before() -> None:
    assert VERSIONS


@pytest.mark.parametrize("after", STEPS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_batch_that_an_earlier_version_began_is_ended_by_this_one(version: str, after: str) -> None:
    with unpacked(version) as place:
        run_alone(go_on, [place, after, no_bug])


# a version that reads something else than was written


def names_have_more_of_their_digest() -> None:
    write_once._DIGITS = 40
    work_folder._DIGESTED = re.compile(r"[a-z][a-z0-9-]*-[0-9a-f]{40}\.(json|arrow)")


def the_keys_of_a_head_are_called_otherwise() -> None:
    position._PREFIX = "waves."


@pytest.mark.parametrize("plant", [names_have_more_of_their_digest, the_keys_of_a_head_are_called_otherwise])
def test_a_version_that_reads_something_else_is_found_out(plant: Callable[[], None]) -> None:
    with unpacked(VERSIONS[0]) as place, pytest.raises(RuntimeError, match="in the process of its own"):
        run_alone(go_on, [place, "validate", plant])
