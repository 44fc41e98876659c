"""Events of a history: what the stream's definition says of its consumer group."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OnReset:
    """Whether a reset of the group by Kafka's tools is taken over, from here on; else it is refused."""

    adopts: bool
