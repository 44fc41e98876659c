"""Runs the cases that it is told on standard input, one JSON line each, and answers with what each came to.

Never writes anything else to standard output. Ends when its input does.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import tempfile
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.faults.all_classes import all_classes
from tests.faults.cluster import open_cluster
from tests.faults.fault_class import Bench


def main(java_home: str, jars: str, bootstrap: str, cluster: str) -> None:
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    classes = {c.name: c for c in all_classes()}
    nodes = open_cluster(Path(cluster), java_home=Path(java_home), jars=Path(jars)) if cluster else None
    out.write("ready\n")
    for line in sys.stdin:
        asked = json.loads(line)
        folder = Path(tempfile.mkdtemp(prefix="wavestitch-fault-"))
        run: dict[str, Any] = {**asked, "ok": False}
        try:
            counts = classes[asked["class"]].run(Bench(folder, bootstrap, Path(java_home), nodes), asked["seed"])
            run |= {"ok": counts.clean, **asdict(counts)}
            if not counts.clean:
                run["error"] = f"not clean: {counts}"
        except Exception:  # whatever it is, it is this case's failure and not the campaign's
            run["error"] = traceback.format_exc(limit=-12)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        run["peak_mib"] = peak_mib()
        out.write(json.dumps(run) + "\n")


def peak_mib() -> int:
    """Most resident memory that this process, or one of its children that has ended, ever had."""
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) >> 10


if __name__ == "__main__":
    main(*sys.argv[1:])
