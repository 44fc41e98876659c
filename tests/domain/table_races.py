"""Processes that write to the same tables at the same moment; each returns what became of its attempts."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from tests.builders.table_rows import first_head, held_rows, published_row, stage, stage_held, write_landing
from tests.clean_processes import clean_processes
from wavestitch.contracts.ports import CommitConflict
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.stream_tables import StreamTables

Work = Callable[[CatalogSettings, Path, int, Barrier, int], list[str]]

_DEADLINE = 120


def race(work: Work, settings: CatalogSettings, folder: Path, *, processes: int, rounds: int) -> list[list[str]]:
    """What each process's `work` returned. Every process starts each round at the same time."""
    context = clean_processes()
    barrier = context.Barrier(processes, timeout=_DEADLINE)
    results: Any = context.SimpleQueue()
    running = [
        context.Process(target=_run, args=(work, settings, folder, n, barrier, rounds, results))
        for n in range(processes)
    ]
    for p in running:
        p.start()
    for p in running:
        p.join(_DEADLINE)
        p.kill()
    assert [p.exitcode for p in running] == [0] * processes
    return [results.get() for _ in running]


def commit_on_the_same_head(
    settings: CatalogSettings, folder: Path, number: int, barrier: Barrier, rounds: int
) -> list[str]:
    """Each round: look at the head, wait for the others, commit. The first round makes catalog and table, too."""
    barrier.wait()
    tables = StreamTables(settings, "race")
    outcomes = []
    for n in range(rounds):
        base = tables.head()
        name = f"round-{n}-process-{number}"
        staged = stage(folder, name, [published_row(name)])
        new = first_head(plan_id=name) if base is None else base.next(plan_id=name)
        barrier.wait()
        try:
            tables.commit(base, new, [staged])
            outcomes.append("committed")
        except CommitConflict:
            outcomes.append("conflict")
        barrier.wait()
    return outcomes


def stage_the_same_and_more(
    settings: CatalogSettings, folder: Path, number: int, barrier: Barrier, rounds: int
) -> list[str]:
    """Each round: rows that all processes stage, under the same decision, and rows of this process alone."""
    tables = StreamTables(settings, "race")
    for n in range(rounds):
        landed = [(0, 10 * n + i, b"%d" % i) for i in range(4)]
        own = [(1 + number, 10 * n + i, b"own") for i in range(3)]
        shared_file = write_landing(folder / f"shared-{n}-{number}.arrow", landed)
        own_file = write_landing(folder / f"own-{n}-{number}.arrow", own)
        barrier.wait()
        base = tables.head()
        assert base is not None
        stage_held(tables, base, held_rows(shared_file, landed, decision=f"shared-{n}"))
        stage_held(tables, base, held_rows(own_file, own, decision=f"own-{n}-{number}"))
    return ["staged"] * rounds


def _run(
    work: Work, settings: CatalogSettings, folder: Path, number: int, barrier: Barrier, rounds: int, results: Any
) -> None:
    results.put(work(settings, folder, number, barrier, rounds))
