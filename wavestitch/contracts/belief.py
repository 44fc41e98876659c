"""Whether what is held still counts, by the stream's present definition.

A stream may ask for a proof, or bind ids to partitions, after chunks were held that nobody had asked for either. Those
are not believed: no batch sees them, so they make no conflict for an owner's proven chunks and are not published by a
redrive. They stay held (I1), and come back where the definition goes back; an operator can let them go. What somebody
discarded stays discarded: that is an operator's word, not a producer's. Pure.
"""

from __future__ import annotations

from wavestitch.contracts.chunk_proof import meets
from wavestitch.contracts.held import HeldChunk
from wavestitch.contracts.id_partitions import IdBinding
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stream import Stream


class Belief:
    """What a stream asks of the chunks that are held of it."""

    def __init__(self, stream: Stream) -> None:
        self._proof = stream.proof
        self._ids = IdBinding(stream.id_partitions)

    def believes(self, h: HeldChunk) -> bool:
        return h.reason is Reason.DISCARDED or not self.why_not(h)

    def why_not(self, h: HeldChunk) -> str:
        """Why the record does not count now; empty where it does. The binding is asked of its place, the proof was when
        it was read."""
        if h.chunk.reason is not None or h.chunk.waveform_id is None:
            return ""
        if not meets(h.proof, self._proof):
            return f"it was read when the stream asked for proof: {h.proof}, and now it asks for {self._proof}"
        where = self._ids.of(h.chunk.waveform_id)
        if where is not None and h.chunk.partition not in where:
            return f"it came in partition {h.chunk.partition}, which the stream does not bind its id to now"
        return ""
