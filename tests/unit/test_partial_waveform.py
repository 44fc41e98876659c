"""Where the chunks that are there lie in a waveform that is not whole, from examples that read as the rule."""

from __future__ import annotations

import pytest

from tests.builders.chunks import NOON, make_chunk, make_held
from tests.builders.records import metadata
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.held import HeldChunk
from wavestitch.contracts.partial_waveform import PartialWaveform, lay_out


def held(
    seq: int, samples: int, *, count: int | None, said: int | None = None, byte: int = 1, at: int = 0
) -> HeldChunk:
    """A chunk of so many samples. `said`: what ws-meta says that there are in all."""
    meta = metadata(NOON) if said is None else metadata(NOON, sample_count=said)
    chunk = make_chunk("w", seq, bytes([byte, 0]) * samples, count=count, meta=meta, at=(0, at or 10 + seq))
    return make_held(chunk)


def laid(*some: HeldChunk, copy: str = "first") -> PartialWaveform:
    found = lay_out("w", some, copy=copy)
    assert found is not None
    return found


def drawn(about: PartialWaveform) -> str:
    """Chunks and gaps in order, as `NUMBER:SAMPLES`; in brackets a gap, with a question mark where it is supposed."""
    parts = {at.start: f"{at.chunk.seq}:{at.end - at.start}" for at in about.chunks}
    for gap in about.gaps:
        numbers = str(gap.first) if gap.behind == gap.first + 1 else f"{gap.first}-{gap.behind - 1}"
        parts[gap.start] = f"[{numbers}:{gap.end - gap.start}{'?' if gap.supposed else ''}]"
    return " ".join(parts[start] for start in sorted(parts))


@pytest.mark.parametrize(
    ("chunks", "count", "said", "wanted"),
    [
        ({0: 4, 1: 4, 2: 3}, 3, None, "0:4 1:4 2:3"),
        ({0: 4}, None, None, "0:4"),
        ({0: 4, 2: 4}, None, None, "0:4 [1:4?] 2:4"),
        ({0: 4, 1: 4}, 4, None, "0:4 1:4 [2-3:8?]"),
        # The last is as long as what was left for it: the others are no measure of that.
        ({3: 1, 1: 4}, 4, None, "[0:4?] 1:4 [2:4?] 3:1"),
        ({3: 1}, 4, None, "[0-2:3?] 3:1"),
        # ws-meta says how many samples there are in all: of one gap that is exact, of several it is dealt out.
        ({0: 4, 1: 4}, 4, 13, "0:4 1:4 [2-3:5]"),
        ({1: 4}, 3, 12, "[0:4?] 1:4 [2:4?]"),
        ({1: 4, 3: 4}, 5, 18, "[0:3?] 1:4 [2:3?] 3:4 [4:4?]"),
        # What it says cannot be.
        ({0: 4, 1: 4}, 4, 9, "0:4 1:4 [2-3:8?]"),
    ],
)
def test_chunks_lie_where_they_would_and_what_misses_is_between_them(
    chunks: dict[int, int], count: int | None, said: int | None, wanted: str
) -> None:
    about = laid(*(held(seq, samples, count=count, said=said) for seq, samples in chunks.items()))
    assert drawn(about) == wanted
    assert about.supposed == ("?" in wanted)
    ends = [at.end for at in about.chunks] + [gap.end for gap in about.gaps]
    starts = [at.start for at in about.chunks] + [gap.start for gap in about.gaps]
    assert sorted(starts) == [0, *sorted(ends)[:-1]]
    assert about.samples == max(ends)
    assert about.borders == sorted(starts)[1:]


def test_of_copies_that_contradict_each_other_one_is_laid_out() -> None:
    both = [held(0, 4, count=3), held(1, 4, count=3, at=5), held(1, 2, count=3, byte=9, at=6), held(2, 1, count=3)]
    first, last, third = (laid(*both, copy=name) for name in ("first", "last", "0:6"))
    assert (drawn(first), drawn(last), drawn(third)) == ("0:4 1:4 2:1", "0:4 1:2 2:1", "0:4 1:2 2:1")
    assert [about.others for about in (first, last, third)] == [1, 1, 1]
    assert first.digest != last.digest == third.digest
    assert lay_out("w", both, copy="0:99") is None
    with pytest.raises(BadInput, match="allowed are first, last"):
        lay_out("w", both, copy="best")


def test_a_chunk_whose_bytes_are_gone_is_a_gap_of_its_own_length_unless_another_copy_has_them() -> None:
    bare = make_held(held(1, 3, count=2).chunk, stored=False)
    assert drawn(laid(held(0, 4, count=2), bare)) == "0:4 [1:3]"
    assert drawn(laid(held(0, 4, count=2), bare, held(1, 3, count=2, at=50))) == "0:4 1:3"
    assert lay_out("w", [bare]) is None
    assert lay_out("w", []) is None
