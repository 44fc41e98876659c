"""How records that outlive the code that wrote them are written and read: one mechanism for all of them.

A record is a frozen dataclass. As JSON it is an object of its fields and of `format`, a whole number from 1. Read is
what this version knows and what is older (`upgrades` say how an older one becomes the next); a newer one is refused by
a sentence, and so is whatever lacks a field, has an unknown one, or one of another kind. Nothing is converted, guessed
or filled in: a text is no number, and what has a default in Python must be there nevertheless. Never raises anything
but `BadInput`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from wavestitch.contracts.errors import BadInput, NewerFormat

if TYPE_CHECKING:
    from pydantic import TypeAdapter

R = TypeVar("R")
Fields = dict[str, Any]
_SHOWN = 80


@dataclass(frozen=True)
class Versioned(Generic[R]):
    """One kind of record.

    `what`: as a sentence names it ("the plan"). `way_out`: what to do where it cannot be read. `upgrades[n]`: the
    fields of format n+1, given those of format n. `wrong`: what no writer of ours would say, as half a sentence, or
    None.
    """

    kind: type[R]
    what: str
    way_out: str
    format: int = 1
    upgrades: Mapping[int, Callable[[Fields], Fields]] = field(default_factory=dict)
    wrong: Callable[[R], str | None] = lambda _: None

    def prepare(self) -> None:
        """Make what checks a record now, not at the first one: some ten milliseconds, which forked processes share."""
        _ = self._adapter

    def content(self, record: R) -> Fields:
        """The record as an object of JSON."""
        return {"format": self.format, **self._dump(record)}

    def text(self, record: R) -> str:
        return json.dumps(self.content(record), indent=1, sort_keys=True)

    def line(self, record: R) -> str:
        return json.dumps(self.content(record), sort_keys=True)

    def read(self, text: str | bytes) -> R:
        """The record that was written as this text."""
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            raise BadInput(f"{self.what} is not JSON; {self.way_out}") from None
        return self.of(found)

    def of(self, found: object, *, what: str = "") -> R:
        """The record behind an object of JSON. `what`: as a sentence names this very one."""
        from pydantic import ValidationError  # noqa: PLC0415 - slow to load, and every Spark worker imports this module

        what = what or self.what
        fields = self._current(found, what)
        try:
            # As JSON once more: what is strict in Python would refuse a list for a tuple.
            (record,) = self._adapter.validate_json(json.dumps([fields]))
            unsaid = _unsaid(fields, self._dump(record))
        except ValidationError as error:
            raise BadInput(f"{what} {_first(error)}; {self.way_out}") from None
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
            raise BadInput(f"{what} is not what was written; {self.way_out}") from None
        if unsaid is not None:
            raise BadInput(f"{what} lacks a field: {unsaid}; {self.way_out}")
        wrong = self.wrong(record)
        if wrong is not None:
            raise BadInput(f"{what} is not what this system writes: {wrong}; {self.way_out}")
        return record

    def _dump(self, record: R) -> Fields:
        found: Fields = self._adapter.dump_python((record,), mode="json")[0]
        return found

    def _current(self, found: object, what: str) -> Fields:
        """The fields as the present format has them."""
        if not isinstance(found, dict):
            raise BadInput(f"{what} is no JSON object; {self.way_out}")
        fields = dict(found)
        seen = check_format(fields.pop("format", None), known=self.format, what=what, way_out=self.way_out)
        for older in range(seen, self.format):
            if older not in self.upgrades:
                raise BadInput(
                    f"{what} has format {older}, which was never released; this version reads {self.format}: "
                    f"{self.way_out}"
                )
            try:
                fields = self.upgrades[older](fields)
            except (LookupError, TypeError, ValueError, AttributeError):
                raise BadInput(f"{what} lacks a field of its format {older}; {self.way_out}") from None
        return fields

    @cached_property
    def _adapter(self) -> TypeAdapter[tuple[R]]:
        from pydantic import ConfigDict, TypeAdapter  # noqa: PLC0415

        # In a tuple, since a dataclass of the standard library takes no settings of its own, but those around it.
        config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
        return TypeAdapter(tuple[self.kind], config=config)  # type: ignore[name-defined]


def check_format(seen: object, *, known: int, what: str, way_out: str) -> int:
    """The format that a record, or a set of rows, says it has. Refused is one that is none, and a newer one."""
    if not isinstance(seen, int) or isinstance(seen, bool) or seen < 1:
        raise BadInput(f"{what} has format {ascii(seen)[:_SHOWN]}, which is none; {way_out}")
    if seen > known:
        raise NewerFormat(
            f"{what} was written by a newer Wavestitch (format {ascii(seen)[:_SHOWN]}; this version reads up to "
            f"{known}); use that version, or {way_out}",
            format=seen if seen < 1 << 31 else -1,
        )
    return seen


def _unsaid(given: Any, meant: Any) -> str | None:
    """The first field, however deep, that was not given but filled in; None where there is none."""
    if isinstance(meant, dict):
        missing = next((k for k in meant if k not in given), None)
        if missing is not None:
            return ascii(missing)[1:-1][:_SHOWN]
        pairs = [(given[k], v) for k, v in meant.items()]
    elif isinstance(meant, list):
        if len(given) < len(meant):
            return f"number {len(given) + 1} of a list"
        pairs = list(zip(given, meant, strict=True))
    else:
        return None
    return next((found for one, other in pairs if (found := _unsaid(one, other)) is not None), None)


def _first(error: Any) -> str:
    """What is wrong first, without the value: it may be long, or somebody's data."""
    found = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in found["loc"][1:])
    place = ascii(where)[1:-1][:_SHOWN]
    if found["type"] in ("missing", "missing_argument"):
        return f"lacks a field: {place}"
    if found["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        return f"has an unknown field: {place}"
    return f"has a field of another kind: {place} ({found['msg'][:_SHOWN]})"
