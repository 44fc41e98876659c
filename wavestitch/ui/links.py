"""Addresses within our pages, as attributes of links."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from markupsafe import Markup, escape


def link(path: str, said: Mapping[str, str]) -> Markup:
    """Whole, however long, since what is shown may be cut and an address may not. What is empty is left out."""
    return escape(f"{path}?{urlencode({k: v for k, v in said.items() if v}, errors='surrogatepass')}")
