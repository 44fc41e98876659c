"""What a promotion would make is compared with what was shown, and every chunk of a row that goes was read as one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders.chunks import make_chunk
from tests.builders.heads import make_head
from tests.builders.plans import make_plan
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.decided import Decision, Fates
from wavestitch.contracts.decision import decide
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.fates import ChunkFate, Evidence
from wavestitch.contracts.held import PublishedChunk, PublishedWaveform
from wavestitch.contracts.plain_waveforms import no_plain
from wavestitch.contracts.promotion import (
    NO_ROW,
    Promotion,
    check_promotion,
    digest_of_pieces,
    made_otherwise,
    rows_as_made,
    rows_as_shown,
)
from wavestitch.contracts.quantities import Offset
from wavestitch.contracts.reasons import Fate, Reason

ONE, OTHER = make_chunk("w", 0, at=(0, 1)), make_chunk("w", 1, at=(0, 2))
NEW = make_chunk("w", 1, b"\7\0", at=(0, 3))
LATE = make_chunk("w", 0, at=(0, 4))


def row(*chunks: ChunkFacts) -> PublishedWaveform:
    return PublishedWaveform("w", tuple(PublishedChunk(c.partition, c.offset, c.length, c.piece) for c in chunks))


def digest(*chunks: ChunkFacts) -> str:
    return digest_of_pieces(c.piece for c in chunks)


def decides(*fates: ChunkFate) -> Decision:
    """A decision of these fates."""
    nothing = Evidence(chunks=(), stitched={}, seen_ms={})
    empty = decide(make_plan(), nothing, head=make_head(), held=[], published={})
    return replace(empty, fates=Fates(no_plain(ChunkTable.of([])), fates))


def refuses(*chunks: ChunkFacts) -> list[ChunkFate]:
    return [ChunkFate(c, Fate.QUARANTINED, Reason.FAILED_EXPECTATION) for c in chunks]


def publishes(*chunks: ChunkFacts) -> list[ChunkFate]:
    return [ChunkFate(c, Fate.PUBLISHED) for c in chunks]


def promotes(*, was: str, made: str) -> Promotion:
    return Promotion(("w",), (was,), (made,), "ann", "why")


def test_a_row_that_goes_has_each_of_its_chunks_read_as_one_or_is_not_taken_out() -> None:
    takes_out = promotes(was=digest(ONE, OTHER), made=NO_ROW)
    replaced = {"w": row(ONE, OTHER)}

    def otherwise(*chunks: ChunkFacts) -> list[str]:
        return made_otherwise(takes_out, decides(*refuses(*chunks)), replaced=replaced)

    assert otherwise(ONE, OTHER) == []
    assert otherwise(OTHER._replace(offset=Offset(77)), ONE) == [], "wherever it lies"
    assert otherwise(ONE) == ["w"]
    assert otherwise(ONE, NEW) == ["w"]
    # What is held of a record that is no chunk is let go by maintenance, whatever it says it is.
    assert otherwise(ONE, OTHER._replace(reason="corrupt")) == ["w"]
    assert otherwise(ONE, OTHER._replace(reason="corrupt", seq=None)) == ["w"]
    assert otherwise(ONE, OTHER._replace(waveform_id=None)) == ["w"]
    assert otherwise(ONE, OTHER._replace(waveform_id="v")) == ["w"]
    # Two of a flat line are one piece: its number says which of them a chunk is.
    flat = [make_chunk("w", n, at=(0, n)) for n in range(2)]
    assert flat[0].piece == flat[1].piece
    takes_out, replaced = promotes(was=digest(*flat), made=NO_ROW), {"w": row(*flat)}
    assert (otherwise(*flat), otherwise(flat[0])) == ([], ["w"])


@pytest.mark.parametrize(
    ("was", "made", "fates", "changes", "otherwise"),
    [
        ((), (ONE, NEW), publishes(ONE, NEW), {}, []),
        # In order of their numbers, wherever they lie.
        ((), (LATE, NEW), publishes(NEW, LATE), {}, []),
        ((), (ONE, NEW), publishes(ONE, OTHER), {}, ["w"]),
        ((), (ONE, NEW), refuses(ONE, NEW), {}, ["w"]),
        ((), (), publishes(ONE, NEW), {}, ["w"]),
        ((ONE, OTHER), (ONE, NEW), [*publishes(ONE, NEW), *refuses(OTHER)], {}, []),
        ((ONE, OTHER), (ONE, NEW), publishes(ONE, NEW), {}, ["w"]),
        # The very row is made again: where its chunks lie now is asked of nobody.
        ((ONE, OTHER), (ONE, OTHER), publishes(ONE, OTHER), {}, []),
        ((ONE, OTHER), (ONE, OTHER), publishes(ONE, OTHER), {"others": ["w"]}, ["w"]),
        ((ONE, OTHER), (ONE, OTHER), publishes(ONE, OTHER), {"others": ["v"]}, []),
        ((ONE, OTHER), (ONE, OTHER), publishes(ONE, OTHER), {"replaced": {}}, ["w"]),
        ((ONE, OTHER), (ONE, OTHER), publishes(ONE, OTHER), {"replaced": {"w": row(ONE, NEW)}}, ["w"]),
        (
            (ONE, OTHER),
            (ONE, OTHER),
            [*publishes(ONE, OTHER), ChunkFate(NEW, Fate.QUARANTINED, Reason.CONFLICT)],
            {},
            ["w"],
        ),
        # A contradiction of what is published anew is held beside it.
        ((), (ONE, OTHER), [*publishes(ONE, OTHER), ChunkFate(NEW, Fate.QUARANTINED, Reason.CONFLICT)], {}, []),
        (
            *((), (ONE, NEW), publishes(ONE, NEW, *(make_chunk(i, 0, at=(0, 9)) for i in "vxuyatsb")), {}),
            ["a", "b", "s", "t", "u", "v", "x", "y"],
        ),
    ],
)
def test_what_would_be_made_otherwise_than_it_was_shown_is_named(
    was: tuple[ChunkFacts, ...],
    made: tuple[ChunkFacts, ...],
    fates: list[ChunkFate],
    changes: dict[str, Any],
    otherwise: list[str],
) -> None:
    promotion = promotes(was=digest(*was) if was else NO_ROW, made=digest(*made) if made else NO_ROW)
    known: dict[str, Any] = {"replaced": {"w": row(*was)} if was else {}, **changes}
    assert made_otherwise(promotion, decides(*fates), **known) == otherwise
    if not otherwise:
        check_promotion(promotion, decides(*fates), stream="ecg", **known)
        return
    with pytest.raises(Refused, match=f"ecg: {len(otherwise)} of these 1 waveforms are not .* first {otherwise[0]} "):
        check_promotion(promotion, decides(*fates), stream="ecg", **known)


def test_rows_are_those_that_were_shown_or_made_where_they_have_these_pieces() -> None:
    promotion = promotes(was=digest(ONE, OTHER), made=digest(ONE, NEW))
    before, behind = {"w": row(ONE, OTHER)}, {"w": row(ONE, NEW)}
    assert (rows_as_shown(promotion, before), rows_as_made(promotion, before)) == ([], ["w"])
    assert (rows_as_shown(promotion, behind), rows_as_made(promotion, behind)) == (["w"], [])
    assert rows_as_shown(promotion, {}) == rows_as_made(promotion, {}) == ["w"]
    assert rows_as_shown(replace(promotion, was=(NO_ROW,)), {}) == []


def test_a_promotion_says_which_rows_go_and_which_come() -> None:
    promotion = Promotion(("a", "b", "c"), ("was", NO_ROW, "was"), ("made", "made", NO_ROW), "ann", "why")
    assert (promotion.taken_out, promotion.put_in) == (("a", "c"), ("a", "b"))
    assert promotion.note == "promote by ann: why (1 replaced, 1 newly published, 1 taken out)"
