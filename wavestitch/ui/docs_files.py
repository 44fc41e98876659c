"""Finds a page of a batch's Data Docs by names that came with a request.

A name never becomes a path: it is looked up among what is there. No link is followed, out of the docs' folder or to
another batch's.
"""

from __future__ import annotations

from pathlib import Path


def find_page(docs: Path, stream: str, plan_id: str, name: str) -> Path | None:
    """The file of page `name` (relative, with `/`) of a batch; None where there is no such page."""
    folder = _entry(_entry(docs, stream), plan_id)
    if folder is None:
        return None
    pages = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*.html") if p.is_file() and not p.is_symlink()}
    return pages.get(name)


def _entry(folder: Path | None, name: str) -> Path | None:
    if folder is None or not folder.is_dir():
        return None
    return next((p for p in folder.iterdir() if p.name == name and p.is_dir() and not p.is_symlink()), None)
