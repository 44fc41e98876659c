"""Libraries that are not installed with Wavestitch: loaded when they are needed, or said by name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from wavestitch.contracts.errors import BadInput


def extra(module: str, *, for_what: str, named: str) -> Any:
    """The module. Raises `BadInput` where a library that it needs is not installed; `named`: the extra that has it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise BadInput(
            f"{for_what} needs {error.name}, which is not installed; `make export` in the checkout installs what the "
            f"lock pins, `pip install 'wavestitch[{named}]'` what is there elsewhere"
        ) from None
