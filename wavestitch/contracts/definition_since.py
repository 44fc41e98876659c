"""What a stream's definition says otherwise than that of the last batch, which its row in the history keeps.

A file that was torn (a full disk, an editor, a copy that broke off) is another valid definition: what stood further
down is as if it had never been asked for. So what guards the table is not given up by silence: a definition that no
longer speaks of it is refused until it says so by name. Any other change is remarked, and stops nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.chunk_proof import STRENGTH
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.harmless import harmless
from wavestitch.contracts.position import HeadKind
from wavestitch.contracts.stream import Stream, spoken_definition

_SHOWN = 120

GIVEN_UP_BY = {
    "proof": "proof: none",
    "id_partitions": "id_partitions: null",
    "on_reset": "on_reset: adopt",
    "rewind_approval": "rewind_approval: anyone",
    "expectations": "expectations: []",
}
"""What guards a table or its positions, and how somebody says that it is to guard it no more. The default of each is
that nothing is asked."""


def refuse_guards_unsaid(stream: Stream, recent: Sequence[BatchRow]) -> None:
    """`recent`: rows of the history, newest first. Raises `Refused` where a batch since the last ingest, or that one,
    went by a definition that had a guard which this one does not name."""
    before = {key for row in _since_ingest(recent) for key in row.definition}
    unsaid = [key for key in GIVEN_UP_BY if key in before and key not in stream.model_fields_set]
    if unsaid:
        said = ", ".join(f"`{GIVEN_UP_BY[key]}`" for key in unsaid)
        raise Refused(
            f"stream {stream.name}: its definition says nothing any more of {', '.join(unsaid)}, which that of the "
            "last batches did; a file that was written in part looks like this. Put back what stood there, or say that "
            f"it is meant: write {said} into streams/{stream.name}.yaml",
            keys=unsaid,
        )


def _since_ingest(recent: Sequence[BatchRow]) -> Sequence[BatchRow]:
    """Backfills and decisions may be planned long before they are committed, by a definition from before the guard; an
    ingest, which moves the positions that it was planned on, is not."""
    said = [row for row in recent if row.definition]
    newest = next((n for n, row in enumerate(said) if row.kind == HeadKind.INGEST), len(said))
    return said[: newest + 1]


def said_of_definition(stream: Stream, recent: Sequence[BatchRow]) -> tuple[str, ...]:
    """A sentence where it changed since the last batch, and one more where it asks for less."""
    before, now = _last(recent), spoken_definition(stream)
    if not before or not (changes := differences(before, now)):
        return ()
    said = f"the definition is another than that of the last batch: {'; '.join(changes)}"
    less = [key for key in GIVEN_UP_BY if _asks_for_less(key, before.get(key), now.get(key))]
    if not less:
        return (said,)
    return (f"ATTENTION: the definition asks for less than that of the last batch did ({', '.join(less)})", said)


def _last(recent: Sequence[BatchRow]) -> dict[str, Any]:
    return next((row.definition for row in recent if row.definition), {})


def _asks_for_less(key: str, before: Any, now: Any) -> bool:
    if key == "proof":
        return STRENGTH.get(now, 0) < STRENGTH.get(before, 0)  # a digest anybody can make
    if isinstance(before, list) and isinstance(now, list):
        return any(one not in now for one in before)
    return before is not None and now is None


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Of two definitions as JSON, by the keys of their files. What one does not say is nothing."""
    was, now = _leaves(before), _leaves(after)
    return tuple(f"{key}: {_shown(was.get(key))} -> {_shown(now.get(key))}" for key in _keys(was, now))


def _keys(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [key for key in dict.fromkeys([*was, *now]) if was.get(key) != now.get(key)]


def _leaves(found: Mapping[str, Any], under: str = "") -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for key, value in found.items():
        if isinstance(value, dict) and value:
            leaves |= _leaves(value, f"{under}{key}.")
        else:
            leaves[f"{under}{key}"] = value
    return leaves


def _shown(value: object) -> str:
    return harmless("nothing" if value in (None, []) else str(value), most=_SHOWN)
