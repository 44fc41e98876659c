"""Which acts a random history has at all, and how often its calls fail: drawn for each seed, apart.

Where each history may do everything, what one act needs another one undoes before it comes to that, and none has much
of anything. So half of all is switched off in each, another half in the next. Decides nothing else.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from typing import TypeVar

T = TypeVar("T")

FAULT_RATES = (0.0, 0.5, 2.0)
"""None, low, high: by so much calls and readers are disturbed more often than by the weights of that."""


class Swarm:
    """`on`: else everything is done as often as by its weight, and no request lands late, as seeded bugs are hunted:
    where they were met, they are met still. `fault_rate`: one of those."""

    def __init__(self, seed: int, *, on: bool = True) -> None:
        self.on = on
        self._random = random.Random(f"swarm {seed}")
        self.fault_rate = self._random.choice(FAULT_RATES) if on else 1.0

    def half(self, of: Sequence[T], *, needed: Collection[T] = ()) -> list[T]:
        """In their order; what is `needed` in any case."""
        rest = [n for n, one in enumerate(of) if one not in needed]
        off = set(self._random.sample(rest, len(rest) // 2)) if self.on else set()
        return [one for n, one in enumerate(of) if n not in off]
