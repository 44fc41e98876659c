"""Which open waveforms still wait, without opening again what was released long ago.

Of a waveform that goes over a batch's end the first chunks are held, and the next batch releases them. Their rows stay
until maintenance takes them out, and for as long as `allowed_lateness` each look for what waits would open them, and
the published file that has them: two batches a second ago or two hundred, each costs the same. So it is noted, on this
host, which waveforms of a held file still wait, and which published files have released the others. Data files never
change: as long as all of these are live, so is what they released. What is not noted, damaged, or not live any more
(compaction, a promotion, a table that was set back, rows that another engine deleted) is looked at again. An authority
for nothing: it only says what need not be opened (I5).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyiceberg.table import Table

from wavestitch.contracts.errors import Altered
from wavestitch.contracts.held import HeldChunk, PublishedWaveform, is_released
from wavestitch.contracts.held_mark import HeldFile
from wavestitch.modes import make_own_folder
from wavestitch.plain_files import plain_text
from wavestitch.tables.lookup.id_index import IdIndex, name_of
from wavestitch.tables.lookup.published_lookup import published_in_files
from wavestitch.write_once import digest_bytes, scratch_file

FORMAT = 1
_MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Noted:
    """Of a held file: the ids of its waveforms that wait, and the names of the published files that have the others."""

    waits: frozenset[str]
    released_by: frozenset[str]


Note = Mapping[str, Noted]
"""By what makes a held file this one; see `key_of`."""


@dataclass(frozen=True, slots=True)
class Released:
    """What was released of a held table, by the table of `published` as it is."""

    published: Table
    index: IdIndex

    def note_of(self, held: Table, files: Collection[HeldFile]) -> dict[str, Noted]:
        """What is noted of these files, and still true."""
        kept = _read(self._path(held))
        some = {key: kept[key] for key in map(key_of, files) if key in kept}
        live = self.index.live(self.published, frozenset[str]().union(*(n.released_by for n in some.values())))
        return {key: noted for key, noted in some.items() if noted.released_by <= live}

    def noted(self, ids_of: Mapping[str, Collection[str]], rows: Collection[HeldChunk], known: Note) -> Note:
        """What is so now. `ids_of`: the waveforms of each file that may wait; `rows`: all that are held of these;
        `known`: what was noted before."""
        ids = frozenset[str]().union(*ids_of.values())
        there: dict[str, PublishedWaveform] = {}
        file_of: dict[str, str] = {}
        for file, row in published_in_files(self.published, ids, index=self.index):
            there[row.waveform_id], file_of[row.waveform_id] = row, name_of(file)
        waiting = {h.chunk.waveform_id for h in rows if not is_released(h.chunk, there)}
        found: dict[str, Noted] = {}
        for key, mine in ids_of.items():
            waits = frozenset(i for i in mine if i in waiting)
            before = known[key].released_by if key in known else frozenset[str]()
            found[key] = Noted(waits, before.union(file_of[i] for i in mine if i in file_of and i not in waits))
        return found

    def keep(self, held: Table, note: Note) -> None:
        """In place of what was noted so far. Whoever cannot write it looks again the next time."""
        with suppress(OSError):
            _write(self._path(held), note)

    def _path(self, held: Table) -> Path:
        return self.index.folder / f"{held.metadata.table_uuid}-waiting-v{FORMAT}.json"


def key_of(file: HeldFile) -> str:
    return f"{file.name} {file.rows} {file.bytes}"


def _read(path: Path) -> dict[str, Noted]:
    """Nothing, where nobody has noted anything, or it is not what was written."""
    with suppress(OSError, ValueError, Altered):
        digest, _, body = plain_text(path).partition("\n")
        if digest_bytes(body.encode()) == digest:
            found: dict[str, Any] = json.loads(body)
            return {key: Noted(frozenset(waits), frozenset(by)) for key, (waits, by) in found.items()}
    return {}


def _write(path: Path, note: Note) -> None:
    """Not synced: half a note proves nothing, and is made again. One that would be large is not kept: what it says is
    looked at, as if nobody had noted it."""
    body = json.dumps({key: [sorted(one.waits), sorted(one.released_by)] for key, one in note.items()})
    if len(body) > _MOST_BYTES:
        return
    make_own_folder(path.parent.parent, path.parent.name)
    with scratch_file(path.parent) as scratch:
        scratch.write_text(f"{digest_bytes(body.encode())}\n{body}", encoding="utf-8")
        scratch.replace(path)
