"""What a catalog of ours is, is said by our settings alone: pyiceberg's own file and variables are not looked at.

It would merge `.pyiceberg.yaml` of its home, of the user's and of the current folder, and all variables PYICEBERG_…,
into every catalog that has the name of ours: whoever can write a file where an operator stands could name classes that
run, and send a login elsewhere. It reads them when it is imported, so the package sees to it before: they are read when
somebody asks for them, and for a catalog of ours nobody does. In a process that is ours (a command, a task of a batch)
they are never read; where we are a guest, catalogs of others have them as ever.
"""

from __future__ import annotations

import logging
from typing import Any

from pyiceberg.typedef import FrozenDict
from pyiceberg.utils.config import Config

from wavestitch.tables.access.at_work import is_ours

_read = Config.__init__
_guest: list[bool] = []
"""Empty: nobody has said it yet."""


def read_when_asked() -> None:
    """From now on, in this process, pyiceberg reads its own file and variables where it is asked for them."""
    if Config.__init__ is _read:
        Config.__init__ = _later  # type: ignore[method-assign,assignment]
        Config.config = property(_asked, _keep)  # type: ignore[assignment]


def only_own_settings() -> None:
    """From now on, in this process, pyiceberg knows nothing but what it is given, for whichever catalog; and does not
    say of each table which class reads its files: in a task's log that stood ten times before what the task did."""
    _guest[:] = [False]
    logging.getLogger("pyiceberg.io").setLevel(logging.WARNING)


def be_guest() -> None:
    """The process is somebody else's, unless it was said to be ours."""
    _guest[:] = _guest or [True]


def _later(_config: Config) -> None:
    """It is read in `_asked`."""


def _asked(config: Config) -> Any:
    if not any(_guest) or is_ours():
        return FrozenDict()
    if "config" not in vars(config):
        _read(config)
    return vars(config)["config"]


def _keep(config: Config, found: Any) -> None:
    vars(config)["config"] = found
