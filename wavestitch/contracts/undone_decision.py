"""Whether the opposite of a decision about what is held touches what that decision changed, and nothing else.

`restore` and `discard` are about whole waveforms; a decision may have changed some of their chunks only, and others may
have decided since. Then the opposite is no undo, and people say by hand what they mean. Pure; decides nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable

from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.held import HeldChunk
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.reasons import Reason


def touched_by(action: HeldAction, held: Iterable[HeldChunk]) -> list[HeldChunk]:
    """Of what counts, the chunks that restore or discard changes."""
    restores = action is HeldAction.RESTORE
    return [h for h in held if h.chunk.reason is None and (h.reason is Reason.DISCARDED) is restores]


def not_undone_by(
    action: HeldAction, *, decision: str, rows: Iterable[HeldChunk], held: Iterable[HeldChunk]
) -> list[ChunkFacts]:
    """The chunks about which `action` is not the opposite of this decision: those that it touches and the decision did
    not, and those that the decision changed and that were decided on or published since. `rows`: all of the waveforms
    in question, as they are held; `held`: those that count."""
    changed = {r.key: r for r in rows if r.decision == decision}
    touched = {h.key: h for h in touched_by(action, held)}
    others = [h.chunk for h in touched.values() if h.decision != decision]
    return others + [r.chunk for key, r in changed.items() if key not in touched]
