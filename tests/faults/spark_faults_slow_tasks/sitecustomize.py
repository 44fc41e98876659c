"""Loaded by every Python that Spark starts in `tests.faults.spark_faults`: makes stitching slow, and fail where asked.

Only in the workers, around the product's own function; what it returns and writes stays as it is.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

_SLOW_SECONDS = 0.5  # a task is then long enough in the middle of writing to be met there


def disturb(module: ModuleType) -> None:
    """Wrap the stitching of one assignment."""
    stitch, write = module.stitch_assignment, module._Task._write_groups

    def disturbed(job: Any, assignment: str) -> Any:
        if note("STITCH_TEST_FAIL_FIRST", assignment):
            raise RuntimeError("this task fails at its first try")
        if note("STITCH_TEST_TWICE", assignment):
            with ThreadPoolExecutor(2) as attempts:
                first, second = attempts.map(lambda _: stitch(job, assignment), range(2))
            if first != second:
                raise RuntimeError(f"two attempts of one task came to {first} and to {second}")
            return first
        return stitch(job, assignment)

    def slow_write(self: Any, gatherer: Any, scratch: Path) -> None:
        write(self, gatherer, scratch)
        time.sleep(_SLOW_SECONDS)

    module.stitch_assignment = disturbed  # type: ignore[attr-defined]
    module._Task._write_groups = slow_write


def note(variable: str, name: str) -> bool:
    """Leave a file of that name in the folder that is named under this word; whether it is new there."""
    folder = json.loads(Path(__file__).with_name("disturb.json").read_text()).get(variable)
    if not folder:
        return False
    Path(folder).mkdir(exist_ok=True)
    try:
        (Path(folder) / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class Finder(importlib.abc.MetaPathFinder):
    """Waits for `spark_apps.stitching` and disturbs it once it is loaded."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != "spark_apps.stitching":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            disturb(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, Finder())
