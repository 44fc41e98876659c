"""Starts what lets old runs of Airflow go, beside Airflow's scheduler, where the settings say how long they stay.

Airflow itself keeps the rows and logs of all runs for ever. A task could not take them away: it has no database.
"""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import logging
import os
import subprocess
import sys
from typing import Any

from airflow.listeners import hookimpl

from wavestitch.contracts.errors import WavestitchError
from wavestitch.flows.old_runs_process import MODULE
from wavestitch.settings import load_settings

FIRST_AFTER_S = 300.0
"""By then a scheduler that was started has done what waited for it."""

log = logging.getLogger(__name__)
_started: list[subprocess.Popen[bytes]] = []


@hookimpl
def on_starting(component: Any) -> None:
    """Called by whatever part of Airflow starts, and by each task. Never raises: runs that stay are no harm today."""
    # As it starts, a part does not say yet which one it is.
    if getattr(component, "__tablename__", "") != "job" or "scheduler" not in sys.argv:
        return
    try:
        if load_settings().airflow.keep_runs is not None:
            _started.append(start(FIRST_AFTER_S))
    except WavestitchError as error:
        log.warning("old runs of Airflow stay: %s", error.message)
    except OSError:
        log.exception("old runs of Airflow stay: what lets them go does not start")


@hookimpl
def before_stopping(component: Any) -> None:
    """It would notice by itself, some seconds later."""
    if getattr(component, "__tablename__", "") == "job":
        while _started:
            child = _started.pop()
            child.terminate()
            child.wait()


def start(wait: float) -> subprocess.Popen[bytes]:
    """With the whole of the scheduler's environment, unlike other children: it is a part of Airflow, and needs its
    database. `wait`: seconds until it begins."""
    command = [sys.executable, "-m", MODULE, str(wait), str(os.getpid())]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, env=dict(os.environ))
