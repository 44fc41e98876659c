"""Whether Python finds our other packages beside this one, or somebody else's of their names. Imports none of them.

The wheel has three: whoever is first on Python's path has a name. Without a word of it, a step would end with a module
that is lacking.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from wavestitch.contracts.errors import BadInput

BESIDE = ("consumers", "spark_apps")
_HERE = Path(__file__).resolve().parent.parent


def refuse_foreign_packages() -> None:
    """Raises `BadInput` for a package of one of our names that is not ours."""
    for name in BESIDE:
        spec = find_spec(name)
        found = None if spec is None else spec.origin or next(iter(spec.submodule_search_locations or ()), None)
        if found is None or not Path(found).resolve().is_relative_to(_HERE / name):
            raise BadInput(
                f"the package {name!r} that Python finds is {found or 'none'}, not that of Wavestitch in {_HERE}: a "
                "folder that comes before it on Python's path (PYTHONPATH, sys.path) has the name, too; rename that "
                "one, take the folder off the path, or give Wavestitch an environment of its own"
            )
