"""The ways out that a refusal names, read from its sentence as an operator reads it, in the order of the sentence."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from wavestitch.batch.plan_request import PlanRequest
from wavestitch.batch.request import parse_accepted, parse_partitions, parse_range, parse_until, rewind_target
from wavestitch.batch.rewind import Target
from wavestitch.contracts.accepted_skip import AcceptedSkip
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.plan import PlanKind

_COMMAND = re.compile(r"`wavestitch (rewind|run|abandon) ([^`]*)`")
_WOULD_SKIP = re.compile(r"Say --accept-skip (\S+), or")
_LIMIT = re.compile(r"(?:limits\.|or )(max_[a-z_]+)")
_BEST = ("new-topic", "head", "rebuilt", "start-over")
"""What loses least comes first; whatever else is named comes after."""
_SAYS_FIRST = ("group", "new-topic", "start-over", "rebuilt")
"""Where a refusal names these it does not know what would be skipped."""


@dataclass(frozen=True, slots=True)
class GoTo:
    """A rewind. `accepts`: what it names as skipped; all, where it says first what that is."""

    target: Target
    accepts: AcceptedSkip


@dataclass(frozen=True, slots=True)
class Take:
    """A batch of what is good."""

    request: PlanRequest


@dataclass(frozen=True, slots=True)
class Decide:
    """Of a batch at a closed gate: `accept`, `park` or `abandon`."""

    plan_id: str
    how: str


@dataclass(frozen=True, slots=True)
class Raise:
    """A limit of the stream's definition."""

    limit: str


Way = GoTo | Take | Decide | Raise


def ways_out(advice: str) -> list[Way]:
    """Every way out that the sentence names; none where it names none."""
    found = [way for name, rest in _COMMAND.findall(advice) for way in _command(name, rest)]
    plans = [way.plan_id for way in found if isinstance(way, Decide) and way.how == "accept"]
    found += [Decide(plan_id, "park") for plan_id in plans if "--gate park" in advice]
    return found + [Raise(limit) for limit in _LIMIT.findall(advice) if "aise" in advice]


def way_out(advice: str) -> GoTo | None:
    """The rewind that skips least; None where the sentence names none."""
    return min((way for way in ways_out(advice) if isinstance(way, GoTo)), key=_rank, default=None)


def named_then(refusal: Refused) -> AcceptedSkip:
    """What a rewind that would skip more than was accepted says that it would skip; nothing of any other refusal."""
    found = _WOULD_SKIP.search(str(refusal))
    return parse_accepted(found[1]) if found else False


def _command(name: str, rest: str) -> list[Way]:
    said = _options(rest)
    if name == "abandon":
        return [Decide(said["--plan"], "abandon")] if "--plan" in said else []
    if name == "rewind":
        return [_go_to(said)] if said.get("--to") else []
    if "--plan" in said:
        return [Decide(said["--plan"], said["--gate"])] if "--gate" in said else []
    if "--offsets" in said:
        ranges = tuple(parse_range(part) for part in said["--offsets"].split(","))
        return [Take(PlanRequest(PlanKind.MANUAL, ranges=ranges))]
    if "--until" in said or said.get("--partitions"):
        only = parse_partitions(said.get("--partitions"))
        return [Take(PlanRequest(only=only, until=parse_until(said.get("--until"))))]
    return [] if said else [Take(PlanRequest())]  # plan again


def _go_to(said: Mapping[str, str]) -> GoTo:
    target = rewind_target(said["--to"], said.get("--partitions"))
    named = said.get("--accept-skip", "")
    return GoTo(target, parse_accepted(named) if named else target.word in _SAYS_FIRST)


def _options(rest: str) -> dict[str, str]:
    words = shlex.split(rest.replace("…", ""))
    pairs = zip(words, [*words[1:], ""], strict=True)
    return {word: "" if after.startswith("--") else after for word, after in pairs if word.startswith("--")}


def _rank(way: GoTo) -> int:
    words = way.target.words
    return min((_BEST.index(word) for word in words if word in _BEST), default=len(_BEST))
