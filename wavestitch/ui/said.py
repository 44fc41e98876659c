"""What XComs say, read without believing their shape: whoever may edit a run may have written anything into them.

Each reader takes any value of JSON and gives what is of its kind, and nothing where that is another one: then the page
says that the task's log says more. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MOST_CHARS = 1 << 18
"""Of one XCom. A longer one is left where it is: no step of ours writes it."""
_NOTHING: Mapping[str, Any] = {}


def plain(value: Any) -> Any:
    """Some writers of Airflow put JSON into the column as text."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def fields(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, dict) else _NOTHING


def entries(found: Any) -> list[Mapping[str, Any]]:
    """The objects of a list."""
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def lines(found: Any) -> tuple[str, ...]:
    return tuple(map(str, found)) if isinstance(found, (list, tuple)) else ()
