"""Whether the catalog is the one that the tables' files and the group belong to: before anything is let go of for good.

A catalog that was set back, exchanged or made anew names less than there is. Everybody who plans refuses it, and
maintenance would take all that it does not name for rubbish. Two witnesses are asked: the group's tags, and the
versions of the tables' metadata that lie in their folders. What an operator lets go by name, and what was proven
before, stands in a note in the landing. Lost, what was let go only stays longer, and what the versions prove is proven
anew; one that cannot be read is a doubt by itself. Removes nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache

from wavestitch.contracts.disagreement import find_disagreement, refuse_disagreement
from wavestitch.contracts.errors import Altered, BadInput, Refused, Transient
from wavestitch.contracts.harmless import in_shell
from wavestitch.contracts.table_versions import TableVersion, let_go_with, proven
from wavestitch.contracts.versioned import Versioned
from wavestitch.maintain.maintenance_run import MaintenanceRun
from wavestitch.plain_files import below, plain_text
from wavestitch.tables.commit.stored_table import StoredTable
from wavestitch.tables.maintenance.unnamed_versions import doubtful_versions
from wavestitch.write_once import write_over

_NOTE = ".versions.json"
_TRIES = 5


@dataclass(frozen=True, slots=True)
class _Noted:
    """Names of metadata files. `proven`: a table that goes on makes them no less so. `let_go`: with who said it."""

    proven: tuple[str, ...] = ()
    let_go: dict[str, str] = field(default_factory=dict)


_NOTES = Versioned(
    _Noted,
    "the note of the tables' versions",
    "put it back as it was; or, if this catalog is the one that the tables always had, delete it",
)


def find_doubt(run: MaintenanceRun, *, let_go: Collection[str] = (), who: str = "") -> str | None:
    """A sentence, with the way out, where the catalog may be another one than before; None where nothing says so.

    `let_go`: names of metadata files that `who` lets go of by name, kept where the run says `apply`. Raises `BadInput`
    for one that is not in doubt.
    """
    said = (_versions_doubt(run, let_go, who), _group_doubt(run))
    return "; ".join(s for s in said if s is not None) or None


def _group_doubt(run: MaintenanceRun) -> str | None:
    """None as well where the log cannot be asked: then the versions alone are believed."""
    tables, stream = run.tables, run.deployment.stream(run.stream)
    for _ in range(_TRIES):
        head = tables.head()
        if head is None and not (run.landing / run.stream).is_dir():
            return None  # nothing was read here
        try:
            log = run.deployment.log
            known = sorted(head.positions) if head is not None else log.topic(stream.topic).partitions
            group = log.group_offsets(stream.group, stream.topic, known)
        except (Transient, Refused, BadInput) as error:
            run.say(f"what the group shows is not known: {error.message}")
            return None
        doubt = find_disagreement(head, group, table=tables.table_uuid())
        if doubt is None:
            return None
        if tables.head() == head:  # else a batch was committed and shown in the group between our two looks
            return refuse_disagreement(doubt, stream=stream.name, group=stream.group, head=head).message
    return f"the head of stream {run.stream} changed {_TRIES} times while it was looked at; run maintenance again"


def _versions_doubt(run: MaintenanceRun, let_go: Collection[str], who: str) -> str | None:
    path = below(run.landing, run.stream) / _NOTE
    try:
        noted = _NOTES.read(plain_text(path))
    except FileNotFoundError:
        noted = _Noted()
    except (Altered, BadInput) as error:
        return f"{path}: {error.message}"
    except OSError as error:
        return f"{path}: {error.strerror}; let whoever runs maintenance read it"
    others = cache(run.tables.named_by_others)
    found = {
        stored: doubtful_versions(stored, named_by_others=others, remembered=noted.proven)
        for stored in run.tables.stored()
    }
    every = [v for versions in found.values() for v in versions]
    names = {v.file for v in every}
    if unknown := sorted(set(let_go) - names):
        raise BadInput(
            f"{ascii(unknown[0])[:120]} is no version of a table of stream {run.stream} that is in doubt; there are: "
            f"{', '.join(sorted(names)) or 'none'}"
        )
    gone = dict.fromkeys(let_go_with(let_go, every), who) | {n: by for n, by in noted.let_go.items() if n in names}
    known = _Noted(tuple(sorted(proven(every) | (names & set(noted.proven)))), gone)
    if run.apply and known != noted:
        write_over(path, _NOTES.text(known))
    left = {stored: [v for v in versions if v.file not in gone] for stored, versions in found.items()}
    said = [_sentence(run.stream, stored, versions) for stored, versions in left.items() if versions]
    return "; ".join(said) or None


def _sentence(stream: str, stored: StoredTable, versions: list[TableVersion]) -> str:
    table = stored.load()
    own = "" if table is None else str(table.metadata.table_uuid)
    newest = {v.table: v for v in reversed(versions)}
    what = " and ".join(
        f"{v.file} ({v.snapshots} snapshots, {'newer' if v.table == own else f'of table {v.table}'})"
        for v in newest.values()
    )
    away = " ".join(f"--let-go {in_shell(v.file)}" for v in newest.values())
    return (
        f"{stored.files.where[-1]} has {what}, which no table of the catalog names: it was set back, or is another "
        "one than before, and nothing is let go of that an earlier one may need. Put that one back, or register what "
        f"is there (docs/operations.md, A catalog that is gone); or, if nobody needs it, `wavestitch maintain {stream} "
        f"{away} --apply`"
    )
