"""A copy of the same bytes, fsynced: what the disk allows."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from benchmarks.children import serve


def copy(job: dict[str, Any]) -> dict[str, Any]:
    folder = Path(job["output"])
    folder.mkdir(parents=True)
    for name in job["files"]:
        target = folder / Path(name).name
        shutil.copyfile(name, target)
        with target.open("rb") as handle:
            os.fsync(handle.fileno())
    return {}


if __name__ == "__main__":
    serve(copy)
