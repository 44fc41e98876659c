"""Every decision of a test, made twice: by columns, as the product does, and of each chunk as an object.

The second is the specification. Wherever the tests decide, both have to say the same of every chunk, or refuse in the
same words; a seeded bug is in one of them alone, and is played without the comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from wavestitch.contracts import decision
from wavestitch.contracts.decided import Decision
from wavestitch.contracts.errors import WavestitchError
from wavestitch.contracts.plain_waveforms import PlainWaveforms, no_plain

as_the_product_does = decision.decide_beside


def decide_both_ways(plain: PlainWaveforms, *what: Any, **more: Any) -> Decision:
    """In place of `decision.decide_beside`."""
    found, specified = _Outcome(plain, *what, **more), _Outcome(no_plain(plain.table), *what, **more)
    assert found.said == specified.said, "columns and objects make two decisions"
    return found.get()


@contextmanager
def compared(*, apply: bool = True) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decision, "decide_beside", decide_both_ways if apply else as_the_product_does)
        yield


class _Outcome:
    """A decision, or why there is none. `said`: all of it, as values."""

    def __init__(self, plain: PlainWaveforms, *what: Any, **more: Any) -> None:
        self.error: WavestitchError | None = None
        try:
            self.found = as_the_product_does(plain, *what, **more)
        except WavestitchError as error:
            self.error = error
            self.said: Any = (type(error), str(error), error.to_json())
            return
        d = self.found
        self.said = (d.digest, d.publish, list(d.fates), d.holds, d.head, d.carried_in, d.held_counts, d.held_bytes)
        self.said += (d.counts(), d.fates.by_partition(), d.reasons())

    def get(self) -> Decision:
        if self.error is not None:
            raise self.error
        return self.found
