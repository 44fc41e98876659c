"""What somebody wants verified, as text, turned into a request. Pure; serves the command line and Airflow."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wavestitch.batch.request import parse_partitions, plan_request
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import Scope
from wavestitch.contracts.quantities import Partition

_BATCH = re.compile(r"[0-9a-f]{4,32}")


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """What is meant: offsets, the waveforms that start in an interval, what a batch read (its plan's id, or the
    beginning of it), or all that the log has and ingests have read. `only`: of these partitions."""

    ranges: tuple[OffsetRange, ...] = ()
    scope: Scope | None = None
    batch: str = ""
    only: frozenset[Partition] | None = None


def verify_request(params: Mapping[str, Any]) -> VerifyRequest:
    """`params`: `offsets` (`PARTITION:START-END,…`), `interval` (`START/END`) or `batch` (a plan id, or its beginning),
    none of them for all that ingests have read and the log still has; `partitions` (`0,2`) with any of them."""
    asked = {name: str(params.get(name) or "").strip() for name in ("offsets", "interval", "batch")}
    if len(named := [name for name, text in asked.items() if text]) > 1:
        raise BadInput(f"{' and '.join(named)} exclude each other; give one")
    if asked["batch"] and not _BATCH.fullmatch(asked["batch"]):
        raise BadInput(f"{ascii(asked['batch'])[:80]} is not a plan id, or the beginning of one (4 to 32 hex digits)")
    found = plan_request("manual", None, {"offsets": asked["offsets"], "interval": asked["interval"]})
    return VerifyRequest(found.ranges, found.scope, asked["batch"], parse_partitions(params.get("partitions")))
