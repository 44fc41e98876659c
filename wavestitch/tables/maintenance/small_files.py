"""Small data files of one table: which there are, and others with the same rows in their place.

Written, proven to be the same row for row, and only then committed, on top of whatever batches have committed
meanwhile. Decides nothing about which are small. Keeps I2 and I3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from wavestitch.contracts.errors import Transient
from wavestitch.contracts.maintenance import DataFileFacts
from wavestitch.contracts.ports import CommitConflict
from wavestitch.contracts.sample_kinds import Encoding, SampleType
from wavestitch.tables.access.reading import reading
from wavestitch.tables.commit.stored_table import StoredTable
from wavestitch.tables.lookup.file_scans import deleted_rows, files_to_read, stream_file
from wavestitch.tables.lookup.unpacked import unpacked_file
from wavestitch.tables.maintenance.put_together import LARGE_BYTES, put_waveforms_together, written_type
from wavestitch.tables.maintenance.replacement_proof import prove_same, sum_of_files
from wavestitch.tables.maintenance.table_state import file_facts

DELETED = (
    "another tool deleted rows of files that were put together meanwhile; nothing changed, run maintenance again: it "
    "leaves such files as they are"
)
BESIDE = "a batch committed while small files were put together; nothing changed, run maintenance again"
_TRIES = 5

Choose = Callable[[Iterable[DataFileFacts]], Mapping[str, Sequence[DataFileFacts]]]
"""Which of these files are to be put together, by partition."""


@dataclass(frozen=True, slots=True)
class SmallFiles:
    """Of one table as it was loaded, by partition. `kept`: why others stay as they are."""

    stored: StoredTable
    table: Table
    groups: Mapping[str, Sequence[DataFile]]
    kept: tuple[str, ...]

    @property
    def files(self) -> list[DataFile]:
        return [file for group in self.groups.values() for file in group]

    @property
    def bytes(self) -> int:
        return sum(file.file_size_in_bytes for file in self.files)

    @property
    def rows(self) -> int:
        return sum(file.record_count for file in self.files)

    @property
    def paths(self) -> list[str]:
        return [file.file_path for file in self.files]


@dataclass(frozen=True, slots=True)
class Replaced:
    """How many files were added, how many rows compared, and how often a batch was first."""

    added: int
    rows: int
    conflicts: int


def find_small(
    stored: StoredTable,
    choose: Choose,
    *,
    snapshot_id: int | None = None,
    apart: Callable[[DataFile], str] = lambda file: "",
) -> SmallFiles | None:
    """Of a snapshot, the current one unless given; None where there is no table. What is large where it is unpacked is
    not small, however well it was packed. `apart`: files of which it says different things are not put together."""
    table = stored.load_to_change()
    if table is None:
        return None
    strange = stored.strange_columns(table)
    if strange:  # what others have in a column of theirs would not be in the new files
        return SmallFiles(stored, table, {}, tuple(f"small files stay as they are: {said}" for said in strange))
    tasks = files_to_read(table, snapshot_id=snapshot_id)
    whole = {task.file.file_path: task.file for task in tasks if deleted_rows(table, task) is None}
    odd = len(tasks) - len(whole)
    kept = (f"{odd} files of {stored.name} stay as they are: another tool deleted rows of them",) if odd else ()
    by_facts: dict[DataFileFacts, str] = {}
    for path, file in whole.items():
        found = file_facts(file)
        by_facts[found._replace(partition=" ".join(filter(None, (found.partition, apart(file)))))] = path
    chosen = [f for some in choose(by_facts).values() for f in some]
    with reading(stored.name):
        heavy = {f for f in chosen if unpacked_file(table, whole[by_facts[f]]) >= LARGE_BYTES}
    left = choose(f for f in by_facts if f not in heavy)
    groups = {part: [whole[by_facts[f]] for f in some] for part, some in left.items()}
    return SmallFiles(stored, table, groups, kept)


def put_together(small: SmallFiles, *, encoding: Encoding, target_bytes: int, say: Callable[[str], None]) -> Replaced:
    """One snapshot with new files of about `target_bytes` in the place of these.

    Raises `Altered` where what was written is not what was read, `Transient` where others were first each time, or took
    files away that were read: then nothing has changed.
    """
    stored, table = small.stored, small.table
    paths = [p for group in small.groups.values() for p in _write(small, group, encoding, target_bytes)]
    new = stored.data_files(table, paths)
    say(f"comparing every row of what was put together of {stored.name}")
    before = sum_of_files(table, small.files)
    prove_same(stored.name, before, sum_of_files(table, new))
    return Replaced(len(new), before.rows, _commit(small, new))


def _write(small: SmallFiles, group: Sequence[DataFile], encoding: Encoding, target_bytes: int) -> list[str]:
    stored, table = small.stored, small.table
    if not stored.name.endswith(".waveforms"):
        rows = (batch for file in group for batch in stream_file(table, file))
        return stored.write(table, rows, file_bytes=target_bytes)
    by_type: dict[SampleType, list[DataFile]] = {}
    for file in group:
        by_type.setdefault(written_type(table, file), []).append(file)
    paths: list[str] = []
    for samples, files in by_type.items():
        rows = (batch for file in files for batch in stream_file(table, file))
        paths += put_waveforms_together(table, rows, samples=samples, encoding=encoding, target_bytes=target_bytes)
    return paths


def _commit(small: SmallFiles, new: Sequence[DataFile]) -> int:
    """How often others were first. What they add leaves the old files where they are; where some of these are gone,
    what was read is not what counts any more: nor where another tool has deleted rows of them since and left the files,
    as engines do that merge when they read. What replaced them would bring these rows back."""
    table: Table | None = small.table
    for conflicts in range(_TRIES):
        if table is None:
            break
        whole = {task.file.file_path for task in files_to_read(table) if deleted_rows(table, task) is None}
        if not whole.issuperset(small.paths):
            raise Transient(DELETED)
        try:
            small.stored.replace(table, small.files, new)
            return conflicts
        except CommitConflict:
            table = small.stored.load_to_change()
    raise Transient(BESIDE)
