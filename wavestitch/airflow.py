"""All DAGs of a deployment, for an Airflow of somebody's own: a file of two lines in its DAG folder makes them.

    from wavestitch.airflow import dags
    globals().update(dags())

They are those of `dags/`, which the wheel holds beside this module. One of its files that cannot be loaded fails the
whole with its error, which Airflow shows: none goes missing without a word. Decides nothing of what a DAG does.
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from airflow.sdk import DAG

from wavestitch.own_packages import refuse_foreign_packages

_HERE = Path(__file__).resolve().parent


def dags() -> dict[str, DAG]:
    """By keys that no name of a module has: a stream chooses its own. Settings are looked for as everywhere. Raises
    `BadInput` where another package has the name of one of ours: no task would find what it needs."""
    refuse_foreign_packages()
    found = [value for path in dag_files() for value in vars(_loaded(path)).values() if isinstance(value, DAG)]
    return {f"DAG {dag.dag_id}": dag for dag in found}


def dag_files() -> list[Path]:
    """Those of the installed package; in a checkout, those of its folder."""
    folder = next(f for f in (_HERE / "dags", _HERE.parent / "dags") if f.is_dir())
    return sorted(folder.glob("*.py"))


def _loaded(path: Path) -> ModuleType:
    """Anew each time: the streams may be others by now."""
    name = f"wavestitch_dags_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded as a module")
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
