"""Lets Great Expectations be imported without SciPy's statistics, until somebody asks for one of them.

Two of its expectations compute with them, and no stream may declare either (`contracts.expectation`); importing them
is a sixth of what importing Great Expectations takes. To be called before that is imported.
"""

from __future__ import annotations

import importlib
import sys
from importlib.util import LazyLoader, find_spec, module_from_spec

_PACKAGE, _LATER = "scipy", "stats"


def import_statistics_later() -> None:
    """Python's own way: the module is there, and is loaded when something of it is used."""
    name = f"{_PACKAGE}.{_LATER}"
    spec = None if name in sys.modules else find_spec(name)
    if spec is None or spec.loader is None:
        return
    spec.loader = LazyLoader(spec.loader)
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    setattr(importlib.import_module(_PACKAGE), _LATER, module)
