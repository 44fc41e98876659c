"""The stages of maintenance, in the order in which they run. What they find is decided elsewhere. Pure."""

from __future__ import annotations

from wavestitch.contracts.stages import Effect, Stage, Undo, Undoing

_HELD_GOES = frozenset({Effect.HELD_STAGED, Effect.HEAD, Effect.HELD_MAIN, Effect.HELD_GONE})


def _never(bound: str) -> Undo:
    return Undo(Undoing.NEVER, bound)


class ClearLanding(Stage):
    name = "landing"
    does = (
        "lets landed payload of committed batches go whose offsets stand, and of failed ones two days after they were "
        "tried again, and whole folders of batches that were committed, abandoned or fenced long ago"
    )
    effects = frozenset({Effect.PAYLOAD_GONE, Effect.FOLDERS_GONE})
    undo = _never("the tables have every byte of a committed batch; nothing of a batch under way goes")


class ClearDocs(Stage):
    name = "docs"
    does = "lets Data Docs go that are older than `data_docs`"
    effects = frozenset({Effect.DOCS_GONE})
    undo = _never("those of batches under way stay")


class ClearLeftovers(Stage):
    name = "leftovers"
    does = (
        "lets hidden files of killed readers and steps go, that nobody holds and nothing has changed for `orphan_age`, "
        "payload in a store, as old, of batches without a folder, and previews older than `previews`, which nobody may "
        "do any more"
    )
    effects = frozenset({Effect.LEFTOVERS_GONE})
    undo = _never("nothing that was finished is among it")


class DeleteHeld(Stage):
    name = "held"
    does = "takes held rows out whose waveform every retained snapshot has, with the same piece"
    effects = _HELD_GOES
    undo = _never("every byte that goes is published; open, quarantined and conflicting rows stay")


class ExpireJunk(Stage):
    name = "junk"
    does = "takes records out that are no chunks and were held for longer than `junk`; never a chunk of a waveform"
    effects = _HELD_GOES
    undo = _never("the log has them for as long as its retention says")


class Compact(Stage):
    name = "compact"
    does = (
        "puts small files of one day together, sorted by source and start, and commits them once every row of the old "
        "files was compared with those of the new"
    )
    effects = frozenset({Effect.REPLACED, Effect.HELD_STAGED, Effect.HEAD, Effect.HELD_MAIN})
    undo = Undo(Undoing.NOT_NEEDED, "the rows are the same; the old files stay until their snapshots go")


class ExpireSnapshots(Stage):
    name = "snapshots"
    does = "lets snapshots of each table go that are beyond `snapshot_age` or `most_snapshots`"
    effects = frozenset({Effect.HISTORY, Effect.SNAPSHOTS_GONE})
    undo = _never("time travel and `rewind --to previous` reach as far as `snapshot_age` and `least_snapshots`")


class RemoveOrphans(Stage):
    name = "orphans"
    does = "removes files in the tables' folders that nothing names, unchanged and known to be so for `orphan_age`"
    effects = frozenset({Effect.FILES_GONE, Effect.SEEN})
    undo = _never("no snapshot names them, and no batch under way has staged them")


class PruneIndex(Stage):
    name = "index"
    does = "forgets what this host's index of ids knows of files that no snapshot names"
    effects = frozenset({Effect.INDEX})
    undo = Undo(Undoing.NOT_NEEDED, "the index is made anew at any time")


STAGES: tuple[type[Stage], ...] = (
    ClearLanding,
    ClearDocs,
    ClearLeftovers,
    DeleteHeld,
    ExpireJunk,
    Compact,
    ExpireSnapshots,
    RemoveOrphans,
    PruneIndex,
)
"""In this order: what no batch needs goes first, then the tables are put in order, then snapshots, then what nothing
names any more."""
