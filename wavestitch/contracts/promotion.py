"""A promotion: what the definition makes of a range is published in the place of what is there, by waveform.

    the table has    the range gives by the definition     what the commit does
    a row            another row                           takes the one out, puts the other in
    a row            something that it refuses             takes it out, and holds its chunks with the reason
    nothing          a whole waveform                      puts it in

A waveform's own pieces name its row, wherever they lay: rows of the same pieces have the same samples. What was shown
is what is done, or nothing is. Pure. Keeps I1 (what is taken out is published again, or held) and I2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wavestitch.contracts.errors import Refused
from wavestitch.contracts.harmless import in_shell
from wavestitch.contracts.reasons import Fate, Reason

if TYPE_CHECKING:
    # Only for annotations: whoever plans needs no columns, which are slow to load.
    from wavestitch.contracts.decided import Decision
    from wavestitch.contracts.held import PublishedWaveform

NO_ROW = ""
"""In the place of a row's digest, where there is none."""


@dataclass(frozen=True, slots=True)
class Promotion:
    """`ids`: the waveforms, in order. Beside them, as digests of their pieces (`digest_of_pieces`) or `NO_ROW`: `was`,
    the row that the table has, and `made`, the one that is to be there. `who` and `why`: kept in the head's note."""

    ids: tuple[str, ...]
    was: tuple[str, ...]
    made: tuple[str, ...]
    who: str
    why: str

    @property
    def taken_out(self) -> tuple[str, ...]:
        """The waveforms whose row goes, whether another one comes in its place or not."""
        return tuple(i for i, was in zip(self.ids, self.was, strict=True) if was != NO_ROW)

    @property
    def put_in(self) -> tuple[str, ...]:
        return tuple(i for i, made in zip(self.ids, self.made, strict=True) if made != NO_ROW)

    @property
    def says(self) -> str:
        """In figures."""
        out, put = set(self.taken_out), set(self.put_in)
        return f"{len(out & put)} replaced, {len(put - out)} newly published, {len(out - put)} taken out"

    @property
    def note(self) -> str:
        return f"promote by {self.who}: {self.why} ({self.says})"


def digest_of_pieces(pieces: Iterable[bytes]) -> str:
    """Names a row by its pieces, in order of sequence: each is the SHA-256 of metadata and bytes."""
    return hashlib.sha256(b"".join(pieces)).hexdigest()


def rows_as_shown(promotion: Promotion, published: Mapping[str, PublishedWaveform]) -> list[str]:
    """The waveforms whose row is another one than was shown, or has come or gone since."""
    return [i for i, was in zip(promotion.ids, promotion.was, strict=True) if _row(published.get(i)) != was]


def rows_as_made(promotion: Promotion, published: Mapping[str, PublishedWaveform]) -> list[str]:
    """The waveforms whose row is another one than it left, or has come or gone since."""
    return rows_as_shown(replace(promotion, was=promotion.made), published)


def _row(known: PublishedWaveform | None) -> str:
    return NO_ROW if known is None else digest_of_pieces(c.piece for c in known.chunks)


def check_promotion(
    promotion: Promotion,
    decision: Decision,
    *,
    replaced: Mapping[str, PublishedWaveform],
    others: Collection[str] = (),
    stream: str,
) -> None:
    """Before the commit. Raises `Refused` where anything would become otherwise than was shown (`made_otherwise`)."""
    if changed := made_otherwise(promotion, decision, replaced=replaced, others=others):
        raise changed_since(stream, changed, of=len(promotion.ids))


def made_otherwise(
    promotion: Promotion,
    decision: Decision,
    *,
    replaced: Mapping[str, PublishedWaveform],
    others: Collection[str] = (),
) -> list[str]:
    """The waveforms of which the decision would make something else than is shown, in order. `replaced`: the rows that
    are taken out, as they are now. `others`: waveforms of which something is held that an operator has to decide about.
    None of them, where none of those is meant, no copy that was read contradicts a row that goes (it is to be held, and
    decided about), these are the rows that are shown, the decision publishes exactly those that are, and every chunk of
    a row that goes was read as one, and so has its fate."""
    pieces: dict[str, list[tuple[int, bytes]]] = {i: [] for i in promotion.ids}
    read: set[tuple[str, int, bytes]] = set()
    for f in decision.fates:
        c = f.chunk
        if c.waveform_id is not None and c.seq is not None and c.reason is None:
            read.add((c.waveform_id, c.seq, c.piece))
        if f.fate is Fate.PUBLISHED:
            pieces.setdefault(c.waveform_id or "", []).append((-1 if c.seq is None else c.seq, c.piece))
    conflicts = {f.chunk.waveform_id for f in decision.fates if f.reason is Reason.CONFLICT}
    contradicted = {i for i in replaced if i in conflicts}
    found = {i: digest_of_pieces(piece for _, piece in sorted(some)) if some else NO_ROW for i, some in pieces.items()}
    shown = dict(zip(promotion.ids, promotion.made, strict=True))
    unlike = {i for i, digest in found.items() if digest != shown.get(i, NO_ROW) or i in others}
    lost = {i for i, row in replaced.items() if found[i] != _row(row) and not _was_read(row, read)}
    return sorted(unlike | contradicted | lost | set(rows_as_shown(promotion, replaced)))


def _was_read(row: PublishedWaveform, read: Collection[tuple[str, int, bytes]]) -> bool:
    """Each chunk of the row, wherever it lies, as a chunk: what is held of a record that is none is let go by
    maintenance, and never makes a waveform again. Its number says which chunk it is: two of a flat line are one
    piece."""
    return all((row.waveform_id, seq, c.piece) in read for seq, c in enumerate(row.chunks))


def changed_since(stream: str, others: Sequence[str], *, of: int) -> Refused:
    return Refused(
        f"stream {stream}: {len(others)} of these {of} waveforms are not what was shown any more, first "
        f"{in_shell(others[0])} (`wavestitch waveforms {stream}`, `wavestitch held {stream} show ID`): somebody has "
        f"published, decided or sent something since, or the range has a copy that contradicts them, which an ingest "
        f"has to read. Nothing was changed; preview it again with `wavestitch promote {stream}` and the same range"
    )
