"""Compare: what another definition of a stream would make of a range that its batches have published, or not.

The range is read, stitched and validated once more by that definition, as a verification does it; what comes out is
compared with the table at one snapshot. Publishes nothing and decides nothing: the stream's own definition stays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from wavestitch.batch.carry import Watcher
from wavestitch.batch.publishes_nothing import ComparingEdges
from wavestitch.batch.verify import verify_range
from wavestitch.batch.verify_request import VerifyRequest
from wavestitch.contracts.definition_change import (
    CHANGES,
    Change,
    Changed,
    changed,
    changes_in_words,
    counts_of_changes,
    exit_code_of_changes,
    otherwise,
)
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.stream import Stream

_THE_SAME = (
    "the definition is the one that counts already: what is not the same was published by an earlier one, or altered "
    "since (`wavestitch verify {}`)"
)


@dataclass(frozen=True, slots=True)
class DefinitionCompared:
    """What came of it. `snapshot_id`, `sequence`: the head that was compared with. `otherwise`: what the definition
    says otherwise than the stream's. `read`; `lost`, `cut`: offsets that the log has no more, as of a verification.
    `counts`: waveforms by what becomes of them; `waveforms`: each of them. `remarks`: sentences that change nothing
    about it. `records`: those that were read, by what the table has of them, as of a verification."""

    stream: str
    snapshot_id: int
    sequence: int
    otherwise: tuple[str, ...]
    read: tuple[OffsetRange, ...]
    lost: tuple[OffsetRange, ...]
    cut: tuple[OffsetRange, ...]
    counts: Mapping[str, int]
    waveforms: tuple[Changed, ...]
    remarks: tuple[str, ...] = ()
    records: Mapping[str, int] = field(default_factory=dict)


def compare_definition(
    edges: ComparingEdges, present: Stream, request: VerifyRequest, *, watcher: Watcher
) -> DefinitionCompared:
    """`edges`: those of the other definition; `present`: the one that counts. Raises what `verify_range` raises, and
    `BadInput` for the definition of another stream."""
    differences = otherwise(present, edges.stream)
    found = verify_range(edges, request, watcher=watcher)
    waveforms = tuple(changed(one) for one in found.waveforms)
    same = () if differences else (_THE_SAME.format(edges.name),)
    return DefinitionCompared(
        stream=found.stream,
        snapshot_id=found.snapshot_id,
        sequence=found.sequence,
        otherwise=differences,
        read=found.read,
        lost=found.lost,
        cut=found.cut,
        counts=counts_of_changes(waveforms),
        waveforms=waveforms,
        remarks=(*same, *found.misplaced, *found.remarks),
        records=found.records,
    )


def few_changes(done: DefinitionCompared, *, waveforms: int, ranges: int) -> DefinitionCompared:
    """So much of it, and no more, for places that keep what they are given: the changes first, none that is the same;
    the counts are of all."""
    unlike = [one for one in done.waveforms if one.change is not Change.SAME]
    return replace(
        done,
        read=done.read[:ranges],
        lost=done.lost[:ranges],
        cut=done.cut[:ranges],
        waveforms=tuple(sorted(unlike, key=lambda one: one.change not in CHANGES)[:waveforms]),
        remarks=done.remarks[:ranges],
    )


def compared_to_json(done: DefinitionCompared) -> dict[str, Any]:
    """For scripts, for the report and for XCom: what JSON has, and nothing else."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(done)))
    return {**plain, "compared": changes_in_words(done.counts), "exit_code": exit_code_of_changes(done.counts)}
