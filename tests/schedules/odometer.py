"""Every way through a program that asks what to do: each run of it answers the same questions, the last one otherwise.

As TigerBeetle's exhaustigen. Knows nothing of what is chosen. The program has to ask the same while it hears the same.
"""

from __future__ import annotations


class Odometer:
    """`while odometer.turn(): program(odometer.choose)` runs the program once for each combination of answers."""

    def __init__(self) -> None:
        self._wheels: list[tuple[int, int]] = []
        self._asked = 0
        self._begun = False

    def turn(self) -> bool:
        """On to the next combination; False where there is none. What a run did not get to is asked anew."""
        del self._wheels[self._asked :]
        self._asked = 0
        if not self._begun:
            self._begun = True
            return True
        while self._wheels and self._wheels[-1][0] + 1 == self._wheels[-1][1]:
            self._wheels.pop()
        if not self._wheels:
            return False
        value, bound = self._wheels[-1]
        self._wheels[-1] = value + 1, bound
        return True

    def choose(self, bound: int) -> int:
        """A number below `bound`."""
        if self._asked == len(self._wheels):
            self._wheels.append((0, bound))
        value, known = self._wheels[self._asked]
        assert known == bound, f"question {self._asked} had {known} answers, and now {bound}: not the same program"
        self._asked += 1
        return value

    @property
    def at_the_end(self) -> bool:
        """Whether the next question is one that no run was asked."""
        return self._asked >= len(self._wheels)

    @property
    def answers(self) -> list[int]:
        return [value for value, _ in self._wheels[: self._asked]]
