"""From what a disk may have after a power failure the product recovers; one that leaves out a sync does not.

A fixed few states; `python -m tests.faults.power_loss` goes through all of them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.faults.power_loss import SCENES, Stage
from tests.faults.power_loss_disk import Did, Disk, Name, SyncFile, SyncFolder, Told, Write, after_states
from wavestitch import modes
from wavestitch.tables import catalog

FEW, MOST = 1, 12
"""States of each scene that are recovered from; of a product with a bug so many, at most."""


def test_what_was_synced_stays_and_of_the_rest_anything_may() -> None:
    done: list[Did] = [
        Name("a", 1),
        Write(1, 0, b"1234"),
        SyncFile(1),
        SyncFolder("."),
        Write(1, 4, b"5678"),
        Told("x"),
    ]
    states = list(after_states(Disk(), done))
    certain = {b"1234", b"123456", b"12345678", b"1234" + bytes(4)}
    assert {s.tree.get("a") for s in states} == certain | {None, b"", b"12", bytes(4)}
    assert {s.tree.get("a") for s in states if s.told} == certain


def test_a_name_that_is_not_synced_may_be_there_alone_or_missing_alone() -> None:
    done: list[Did] = [Name("d", 0), Name("d/a", 1), Name("b", 2), Name("c", 2, instead_of="b"), SyncFolder("d")]
    seen = {frozenset(s.tree) for s in after_states(Disk(), done)}
    whole = {"d", "d/a"}
    possible: tuple[set[str], ...] = (set(), {"d"}, whole, {*whole, "b"}, {*whole, "c"}, {"b"}, {"c"})
    assert seen <= {frozenset(one) for one in possible}
    assert {frozenset(), frozenset({*whole, "c"}), frozenset({*whole, "b"}), frozenset({"b"})} <= seen


@pytest.mark.parametrize("name", SCENES)
def test_whatever_a_power_failure_leaves_is_recovered_from(name: str, tmp_path: Path) -> None:
    stage = Stage(SCENES[name], tmp_path / "deployment")
    assert len(stage.states) > 30
    step = len(stage.states) // FEW
    for state in [*stage.states[step // 2 :: step], stage.states[-1]]:
        stage.recover(state)


# a product that leaves out a sync


def _without(kind: str) -> None:
    """No file or folder of this kind is synced."""
    real = os.fsync

    def wrong(handle: int) -> None:
        if re.search(kind, os.readlink(f"/proc/self/fd/{handle}")) is None:
            real(handle)

    os.fsync = wrong  # type: ignore[assignment]


def files_of_a_batch_are_named_before_they_are_on_the_disk() -> None:
    _without(r"/landing/.*\.tmp$")


def rows_are_named_before_they_are_on_the_disk() -> None:
    _without(r"/data/.*\.(tmp|parquet)$")


def what_a_table_is_made_of_is_not_synced() -> None:
    _without(r"/metadata/.*\.(json|avro)$")


def the_names_of_what_a_table_is_made_of_are_not_synced() -> None:
    _without(r"/metadata$")


def a_new_folder_is_not_made_durable() -> None:
    modes.sync_folder = lambda _: None  # type: ignore[assignment]


def a_commit_of_the_catalog_may_be_rolled_back() -> None:
    """As SQLite does it by itself."""
    catalog._keep_commits = lambda _: None  # type: ignore[assignment]


MUTANTS = {
    plant.__name__.replace("_", " "): (plant, scene, how)
    for plant, scene, how in (
        (files_of_a_batch_are_named_before_they_are_on_the_disk, "the first batch", "all names, no bytes"),
        (rows_are_named_before_they_are_on_the_disk, "the first batch", "all names, no bytes"),
        (what_a_table_is_made_of_is_not_synced, "the first batch", "all names, no bytes"),
        (the_names_of_what_a_table_is_made_of_are_not_synced, "the first batch", "no names, all bytes"),
        (a_new_folder_is_not_made_durable, "the first batch", "no names, all bytes"),
        (a_commit_of_the_catalog_may_be_rolled_back, "a rewind", "no names, all bytes"),
    )
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_product_that_leaves_out_a_sync_is_found_out(name: str, tmp_path: Path) -> None:
    plant, scene, how = MUTANTS[name]
    stage = Stage(SCENES[scene], tmp_path / "deployment", plant=plant)
    found = [state for state in stage.states if state.how == how]
    for state in found[:: -max(1, len(found) // MOST)]:
        try:
            stage.recover(state)
        except AssertionError:
            return
    pytest.fail("it is recovered from all that it leaves")
