"""The address of a SQLite file, as SQLAlchemy reads addresses. Opens nothing.

A path that is only put behind `sqlite:///` is another one where it has a percent sign, as folders of branches have
(`feature%2Fx`), or a question mark: two folders would have one catalog.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import URL


def sqlite_address(file: Path) -> str:
    return URL.create("sqlite", database=str(file)).render_as_string()
