"""How many versions of a table's metadata are kept is said here, whatever the table's properties say.

pyiceberg asks the table that stands in the catalog, at every commit, how many versions it keeps and whether it deletes
the others: whoever can write one metadata file would have every commit denied by a word that is no number, or the
older versions deleted, which are a lost catalog's way back. Decides nothing else about them; that none elsewhere is
deleted is `own_place`'s.
"""

from __future__ import annotations

from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.table import update

from wavestitch.tables.access.at_work import is_ours

OWN_VERSIONS = {
    # The metadata file names every snapshot and is written anew by each commit; without these all versions pile up.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "50",
}
_note_really = update._update_table_metadata_log
_delete_really = Catalog._delete_old_metadata


def keep_own_versions(catalog: Catalog) -> Catalog:
    """The same catalog, of ours: every commit of its tables keeps so many."""
    vars(update)["_update_table_metadata_log"] = _note
    vars(catalog)["_delete_old_metadata"] = _delete
    return catalog


def _note(base: Any, *where_and_when: Any) -> Any:
    """The metadata with one version more in its log."""
    if not is_ours():
        return _note_really(base, *where_and_when)
    noted = _note_really(_ours(base), *where_and_when)
    return noted.model_copy(update={"properties": base.properties})


def _delete(io: Any, base: Any, metadata: Any) -> None:
    """The versions that fell out of the log."""
    _delete_really(io, base, _ours(metadata))


def _ours(metadata: Any) -> Any:
    return metadata.model_copy(update={"properties": OWN_VERSIONS})
