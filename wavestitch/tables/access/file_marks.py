"""By what a file is recognised, whatever it is called: its path, the real path behind every link, and its inode.

A table keeps the names that its files were written under; the warehouse may be called otherwise since: behind a link,
on another mount, with a doubled slash. Two names are of one file where they share a mark. Each way of telling is there
for the others' weakness: a mount is no link, and not every file system keeps its inodes. Changes nothing; keeps I3.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from os import stat_result

_LOCAL = re.compile(r"^file:(?:/(?!/)|///)/*")
_STORED = re.compile(r"^s3[an]?://")
_WITH_HOST = re.compile(r"^file:(?://(?P<host>[^/]+))?/?(?P<path>.*)$", re.DOTALL)


def local_path(location: str) -> str:
    """`file:///a/b` and `file:/a/b` (as Java writes it) are the same file; `file://a/b` names a server, and stays. What
    is in an object store has no path: `s3a://b/k` (as Hadoop writes it) is `s3://b/k`."""
    return _LOCAL.sub("/", _STORED.sub("s3://", location))


class Marks:
    """Finds marks; asks once for each folder where it really is."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def of_names(self, locations: Iterable[str]) -> set[str]:
        """Those of files as tables name them, links followed. What is not there has the marks of its name alone."""
        found: set[str] = set()
        for location in locations:
            for path in _readings(location):
                # An object has one name, and there is no link to it.
                found |= {path} if path.startswith("s3://") else self.of(path)
        return found

    def of(self, path: str) -> set[str]:
        """Those of a file by its path, links followed."""
        found = {path, self._real(path)}
        try:
            found.add(inode(os.stat(path)))
            if os.path.islink(path):
                found.add(os.path.realpath(path))
        except (OSError, ValueError):  # it is not there, or cannot be: nobody lists it, either
            pass
        return found

    def listed(self, path: str, about: stat_result) -> frozenset[str]:
        """Those of a plain file that was found in its folder."""
        return frozenset({path, self._real(path), inode(about)})

    def _real(self, path: str) -> str:
        folder, name = os.path.split(path)
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        return os.path.join(self._folders[folder], name)


def inode(about: stat_result) -> str:
    return f"{about.st_dev}:{about.st_ino}"


def _readings(location: str) -> set[str]:
    """Every file that some reader takes the name for: Java passes a host over, others take it for a folder."""
    path = local_path(location)
    host = None if path.startswith(("/", "s3://")) else _WITH_HOST.match(path)
    if host is None:
        return {path}
    inside = f"{host['host'] or ''}/{host['path']}".strip("/")
    return {path, f"/{host['path']}", f"/{inside}", os.path.abspath(inside)}
