"""Landed payload that was damaged is told by its file, in the first line of what a library says of it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from wavestitch.contracts.errors import Altered
from wavestitch.contracts.landed_payload import take_proven


class Damaged:
    """A record batch in which a library finds this."""

    def __init__(self, said: str) -> None:
        self.said = said

    def validate(self, *, full: bool) -> None:
        assert full
        raise pa.ArrowInvalid(self.said)


@pytest.mark.parametrize(
    ("said", "shown"),
    [("offsets go back\nat /src/array.cc:12\nin f()", "offsets go back"), ("", ""), ("x" * 300, "x" * 200)],
)
def test_a_damaged_file_is_named_with_the_first_line_of_what_is_wrong_with_it(said: str, shown: str) -> None:
    batch: Any = Damaged(said)
    with pytest.raises(Altered) as error:
        take_proven("slice.arrow", batch, [0])
    assert error.value.message == (f"slice.arrow is damaged ({shown}); delete it and run the batch's read step again")
    assert error.value.facts == {"file": "slice.arrow"}
