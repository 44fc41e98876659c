"""Streams of tests, as their YAML declares them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from wavestitch.contracts.stream import Stream, parse_stream


def make_stream(name: str = "ecg", *, topic: str = "waves", group: str = "g", **declared: Any) -> Stream:
    text = json.dumps({"topic": topic, "group": group, **declared}, default=lambda part: part.model_dump())
    return _parsed(text, name)


@cache
def _parsed(text: str, name: str) -> Stream:
    return parse_stream(text, name=name)
