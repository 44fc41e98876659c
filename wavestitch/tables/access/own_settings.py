"""What a catalog is, is said by our settings alone: pyiceberg's own file and variables are not looked at.

It would merge `.pyiceberg.yaml` of its home, of the user's and of the current folder, and all variables PYICEBERG_…,
into every catalog that has the name of ours: whoever can write a file where an operator stands could name classes that
run, and send a login elsewhere. Has to be called before `pyiceberg.catalog` is imported, which reads them then; so the
package does it. Changes nothing else.
"""

from __future__ import annotations

import sys

from pyiceberg.utils.config import Config


def only_own_settings() -> None:
    """From now on, in this process, pyiceberg knows nothing but what it is given."""
    Config._from_configuration_files = staticmethod(dict)  # type: ignore[method-assign]
    Config._from_environment_variables = staticmethod(_nothing)  # type: ignore[method-assign,assignment]
    known = sys.modules.get("pyiceberg.catalog")
    if known is not None:  # somebody else's import came first
        vars(known)["_ENV_CONFIG"] = Config()


def _nothing(_config: object) -> dict[str, str]:
    return {}
