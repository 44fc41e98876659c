"""Fields of a form in Airflow that take a text: each has a title and a description.

Of the sections of a form Airflow opens the one alone that has no name: whatever has to be filled in stands there.
"""

from __future__ import annotations

from airflow.sdk import Param


def text_or_nothing(title: str, description: str, *, section: str | None = None, most: int | None = None) -> Param:
    """May be left empty. `most`: so many characters at most. `section`: a closed one; None: the open one."""
    more = {"maxLength": most} if most is not None else {}
    stands = {"section": section} if section is not None else {}
    return Param(None, type=["null", "string"], title=title, description=description, **stands, **more)


def needed_text(title: str, description: str, *, most: int | None = None) -> Param:
    """Without it the form cannot be sent."""
    more = {"maxLength": most} if most is not None else {}
    return Param(type="string", minLength=1, title=title, description=description, **more)
