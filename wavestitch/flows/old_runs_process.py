"""Lets Airflow's old runs go, once a day: their rows, as `airflow db clean` does, and their logs. A program.

`old_runs` starts it beside Airflow's scheduler, in whose environment it is; it ends with it. Runs that are under way
keep their rows, however old they are. Decides nothing else: how long they stay is a setting, and none of ours is read
from rows that go (docs/operations.md).
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

MODULE = "wavestitch.flows.old_runs_process"
DAY_S = 86400.0
RUNS = ("dag_run", "task_instance", "task_instance_history", "xcom", "log", "job")
"""What is of a run; what hangs on it in other tables goes with it."""
OTHERS = ("asset_event", "callback", "revoked_token")
"""What runs leave behind. Triggers go by themselves; DAGs, and versions of them, with what declares them."""
_ROWS_AT_ONCE = 10_000
_LOOK_S = 5.0


def main() -> None:
    """Arguments: seconds to wait first, and the process to end with."""
    due, scheduler = time.monotonic() + float(sys.argv[1]), int(sys.argv[2])
    while (left := due - time.monotonic()) > 0:
        if os.getppid() != scheduler:
            return
        time.sleep(min(left, _LOOK_S))
    try:
        let_go(datetime.now(UTC))
    except Exception:  # of this day: the next one comes, and what went wrong is in the scheduler's output
        traceback.print_exc()
    # In its own place, so that what Airflow takes of memory is taken for a moment a day.
    os.execv(sys.executable, [sys.executable, "-m", MODULE, str(DAY_S), str(scheduler)])  # noqa: S606 - no shell


def let_go(now: datetime) -> None:
    """What is older than the settings say; nothing where they say nothing."""
    from airflow.configuration import conf  # noqa: PLC0415 - takes a second and a hundred MiB

    from wavestitch import terminal  # noqa: PLC0415
    from wavestitch.settings import load_settings  # noqa: PLC0415

    keep = load_settings().airflow.keep_runs
    if keep is None:
        return
    before = now - timedelta(seconds=keep)
    try:
        clean_rows(before)
    finally:
        count, size = remove_old_files(Path(conf.get("logging", "base_log_folder")), before.timestamp())
        said = f"{count} files of logs, {size} bytes, went: nothing in them has changed since {before}"
        terminal.out.print(said, soft_wrap=True, highlight=False)


def clean_rows(before: datetime) -> None:
    """Of runs that began before then. Raises `RuntimeError` where Airflow does not succeed with a table."""
    busy = _under_way(before)
    # To leave a DAG out, Airflow 3.3 stumbles over tables that do not name it (deadlines): it says so, and goes on.
    _clean(before, RUNS, exclude_dag_ids=busy or None, error_on_cleanup_failure=not busy)
    _clean(before, OTHERS, error_on_cleanup_failure=True)


def _clean(before: datetime, tables: Sequence[str], **more: Any) -> None:
    from airflow.utils.db_cleanup import run_cleanup  # noqa: PLC0415

    run_cleanup(
        clean_before_timestamp=before,
        table_names=list(tables),
        skip_archive=True,
        confirm=False,
        batch_size=_ROWS_AT_ONCE,
        **more,
    )


def _under_way(before: datetime) -> list[str]:
    """The DAGs that have a run which began before then and has not ended: Airflow would take its rows."""
    from airflow.models.dagrun import DagRun  # noqa: PLC0415
    from airflow.utils.session import create_session  # noqa: PLC0415
    from airflow.utils.state import State  # noqa: PLC0415
    from sqlalchemy import select  # noqa: PLC0415

    with create_session() as session:
        asked = select(DagRun.dag_id).where(DagRun.state.in_(State.unfinished_dr_states), DagRun.start_date < before)
        return sorted(set(session.scalars(asked)))


def remove_old_files(folder: Path, before: float) -> tuple[int, int]:
    """Files below the folder that have not changed since then, and folders that were as old and are empty; how many
    files, and their bytes. No link is followed. Others may remove the same at the same time."""
    count = size = 0
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                about = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    files, more = remove_old_files(Path(entry.path), before)
                    count, size = count + files, size + more
                    if about.st_mtime < before:
                        with suppress(OSError):  # not empty
                            os.rmdir(entry.path)
                elif about.st_mtime < before:
                    os.unlink(entry.path)
                    count, size = count + 1, size + about.st_size
    return count, size


if __name__ == "__main__":
    main()
