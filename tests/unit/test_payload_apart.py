"""What a record batch says of where its payload lies is a claim: names of objects, as many as its payload takes."""

from __future__ import annotations

import pytest

from wavestitch.contracts.payload_apart import PIECE_BYTES, cut_payload, name_payload, read_apart, say_apart

NAME = name_payload(b"x")


@pytest.mark.parametrize("size", [1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES])
def test_what_is_said_is_read_again_with_the_size_of_each_object(size: int) -> None:
    pieces = list(cut_payload(memoryview(bytes(size))))
    names = [name_payload(piece) for piece in pieces]
    found = read_apart(say_apart(names), size)
    assert found == [(name, len(piece)) for name, piece in zip(names, pieces, strict=True)]
    assert sum(length for _, length in found) == size


def test_a_record_batch_that_says_nothing_has_its_payload_itself() -> None:
    assert read_apart(None, 5) == read_apart({}, 5) == read_apart({b"other": b"x"}, 5) == []


@pytest.mark.parametrize(
    ("names", "size"),
    [
        ([NAME, NAME], 5),
        ([NAME], PIECE_BYTES + 1),
        ([NAME], 0),
        ([NAME, "x"], PIECE_BYTES + 1),
        (["x", NAME], PIECE_BYTES + 1),
        ([""], 5),
        (["../" + NAME], 5),
        ([NAME + "/x"], 5),
        ([NAME.upper()], 5),
        (["payload-é" + NAME[9:]], 5),
    ],
)
def test_what_no_reader_says_is_refused(names: list[str], size: int) -> None:
    with pytest.raises(ValueError, match="objects for"):
        read_apart(say_apart(names), size)
