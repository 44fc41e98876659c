"""What operators decide about copies of one waveform, on purpose, and what comes after that. Judges nothing."""

from __future__ import annotations

from tests.histories.resetting import Resetting
from wavestitch.batch.held_waveforms import Selection
from wavestitch.contracts.held_choice import HeldAction


class DecidedOnPurpose(Resetting):
    def discarded_copy_comes_again(self) -> None:
        """Beside a published waveform a copy that contradicts it is discarded, and sent once more."""
        found = self.sound_ones(1, 1)
        if not found or not self.is_quiet():
            return
        one = found[0][0]
        other, wanted = self.another(one), Selection(ids=(self.id_of(one),))
        self.send(one)
        self.all_there_is()
        self.send(other)
        self.all_there_is()
        self.launch_decision(HeldAction.DISCARD, wanted, far=True)
        self.send(other)
        self.all_there_is()

    def picked_and_completed(self) -> None:
        """Of two copies of a first chunk one is picked, then the last one comes."""
        found = self.sound_ones(1, 2)
        if not found or not self.is_quiet():
            return
        first, last = found[0]
        self.send(first)
        self.send(self.another(first))
        self.all_there_is()
        self.launch_decision(HeldAction.PICK, Selection(ids=(self.id_of(first),)), far=True, pick="first")
        self.send(last)
        self.all_there_is()
