"""What was last seen and told, on disk: of a stream's headroom `LANDING/.told/STREAM/told.json`, of a DAG's failures
`LANDING/.failures/DAG.json`, and what was counted for a stream's metrics, `LANDING/.metrics/STREAM/counted.json`.

None of it is in the stream's own folder, since by that a stream that was planned once is known from one that was only
looked at (`stream_files`). There, since all hosts of a deployment see the landing, whoever looks may write there
already, and neither the catalog nor Airflow must be there to remember it. Not write-once, and the truth about nothing:
a file that is lost or damaged costs one notice more, or has counting begin anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from wavestitch.contracts.errors import Altered, BadInput
from wavestitch.contracts.failures_told import FAILURES, FailuresTold
from wavestitch.contracts.headroom_told import TOLD, Told
from wavestitch.contracts.metrics import COUNTED, Counted
from wavestitch.contracts.versioned import Versioned
from wavestitch.plain_files import below, plain_text
from wavestitch.write_once import disk_errors, write_over

R = TypeVar("R")


def kept_told(landing: Path, stream: str) -> Told:
    """Nothing yet, where nothing was kept or it cannot be read."""
    return _kept(_of_stream(landing, stream), TOLD) or Told()


def keep_told(landing: Path, stream: str, told: Told) -> None:
    _keep(_of_stream(landing, stream), TOLD.text(told))


def kept_failures(landing: Path, dag_id: str) -> FailuresTold:
    return _kept(_of_dag(landing, dag_id), FAILURES) or FailuresTold()


def keep_failures(landing: Path, dag_id: str, told: FailuresTold) -> None:
    _keep(_of_dag(landing, dag_id), FAILURES.text(told))


def kept_counted(landing: Path, stream: str) -> Counted:
    return _kept(counted_folder(landing, stream) / "counted.json", COUNTED) or Counted()


def keep_counted(landing: Path, stream: str, counted: Counted) -> None:
    """Only by whoever has the lock of `counted_folder`: what was counted never goes back."""
    _keep(counted_folder(landing, stream) / "counted.json", COUNTED.text(counted))


def counted_folder(landing: Path, stream: str) -> Path:
    return below(landing, ".metrics", stream)


def _of_stream(landing: Path, stream: str) -> Path:
    return below(landing, ".told", stream) / "told.json"


def _of_dag(landing: Path, dag_id: str) -> Path:
    # Ids of our own DAGs, which Airflow bounds to letters that no path obeys.
    return below(landing, ".failures") / f"{dag_id.replace('/', '_')}.json"


def _kept(path: Path, kind: Versioned[R]) -> R | None:
    try:
        return kind.read(plain_text(path))
    except (FileNotFoundError, NotADirectoryError, Altered, BadInput):
        return None


def _keep(path: Path, text: str) -> None:
    with disk_errors("keeping what was told"):
        write_over(path, text)
