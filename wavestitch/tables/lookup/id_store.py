"""Which data file has which id, by hash, in one SQLite file that proves whatever it answers.

Ids are in buckets by their hash, which is keyed by the store's own random name: whoever chooses ids cannot choose
their bucket, and a bucket is one blob that is written as a whole. The root has a check of every bucket, and each row a
digest over that name: a flipped byte, a lost row, a bucket of another time or of another store is `Damaged`, and never
an answer. It is built of what the table says, and can be built anew at any time. Assumed: that nobody who may write the
file forges digests. Knows neither tables nor manifests but by their names; decides nothing.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from wavestitch.modes import open_new

FORMAT = 2
Hashes = npt.NDArray[np.uint64]
_BUCKETS = 1 << 14
_ENTRY = np.dtype([("hash", "<u8"), ("file", "<u4")])
_SCHEMA = """
CREATE TABLE root (one INTEGER PRIMARY KEY, body BLOB);
CREATE TABLE bucket (number INTEGER PRIMARY KEY, body BLOB);
CREATE TABLE file (number INTEGER PRIMARY KEY, name TEXT UNIQUE, digest BLOB);
CREATE TABLE part (name TEXT PRIMARY KEY, body BLOB);
"""
_AT_ONCE = 500
_BUSY_SECONDS = 60.0


class Damaged(Exception):
    """The file is not what was written, or another's: to be removed and made anew."""


class IdStore:
    """An open store. `identity`: what it is the index of; a file of another identity is `Damaged`."""

    def __init__(self, db: sqlite3.Connection, identity: str) -> None:
        self._db = db
        self._identity = identity.encode()
        self._name, self._checks, self._made = b"", np.zeros(_BUCKETS, "<u4"), False

    @property
    def key(self) -> bytes:
        """Of its hashes. Another store of the same table has another one."""
        return self._name

    # reading

    def known_files(self, names: Iterable[str]) -> dict[str, int]:
        """Number by name, of those files whose ids are all in the store."""
        found = self._rows("SELECT name, number, digest FROM file WHERE name IN ({})", list(names))
        for name, number, digest in found:
            self._prove(digest, b"file", number, str(name).encode())
        return {name: number for name, number, _ in found}

    def known_parts(self, names: Iterable[str]) -> dict[str, npt.NDArray[np.uint32]]:
        """The numbers of the files in each of these parts of the table, as far as they are covered."""
        parts = {}
        for name, body in self._rows("SELECT name, body FROM part WHERE name IN ({})", list(names)):
            self._prove(body[-16:], b"part", str(name).encode(), body[:-16])
            parts[name] = np.frombuffer(body[:-16], "<u4")
        return parts

    def names_of(self, numbers: Iterable[int]) -> dict[int, str]:
        found = self._rows("SELECT number, name, digest FROM file WHERE number IN ({})", list(numbers))
        for number, name, digest in found:
            self._prove(digest, b"file", number, str(name).encode())
        return {number: name for number, name, _ in found}

    def find(self, hashes: Hashes, files: npt.NDArray[np.uint32]) -> Iterator[tuple[int, int]]:
        """Each of these hashes with each of these files that has it."""
        if not len(hashes) or not len(files):
            return
        bodies = self._bodies(np.unique(_bucket_of(hashes)).tolist())
        entries = np.frombuffer(b"".join(bodies.values()), _ENTRY)
        hits = entries[np.isin(entries["hash"], hashes)]
        for entry in hits[np.isin(hits["file"], files)]:
            yield int(entry["hash"]), int(entry["file"])

    # writing

    def add(self, ids: Mapping[str, Hashes]) -> None:
        """Files by name, each with the hashes of all its ids. What is there already is not added again."""
        there = self.known_files(ids)
        fresh = {name: np.unique(hashes) for name, hashes in ids.items() if name not in there}
        if not fresh:
            return
        (last,) = self._db.execute("SELECT coalesce(max(number), 0) FROM file").fetchone()
        numbered = dict(enumerate(fresh, last + 1))
        self._db.executemany(
            "INSERT INTO file VALUES (?, ?, ?)",
            [(n, name, self._digest(b"file", n, name.encode())) for n, name in numbered.items()],
        )
        entries = np.empty(sum(len(h) for h in fresh.values()), _ENTRY)
        entries["hash"] = np.concatenate(list(fresh.values()))
        entries["file"] = np.repeat(np.array(list(numbered), "<u4"), [len(h) for h in fresh.values()])
        buckets = _bucket_of(entries["hash"])
        entries = entries[np.argsort(buckets, kind="stable")]
        touched, first = np.unique(_bucket_of(entries["hash"]), return_index=True)
        numbers = touched.tolist()
        old = self._bodies(numbers)
        # Of no entry numpy makes one part: files of records that are no chunks have no ids.
        parts = np.split(entries, first[1:]) if numbers else []
        self._write({n: old.get(n, b"") + part.tobytes() for n, part in zip(numbers, parts, strict=True)})

    def cover(self, parts: Mapping[str, Sequence[str]]) -> None:
        """Say of parts of the table, by name, which files they consist of. All of these have been added."""
        rows = []
        for part, names in parts.items():
            known = self.known_files(names)
            body = np.array(sorted(known[n] for n in names), "<u4").tobytes()
            rows.append((part, body + self._digest(b"part", part.encode(), body)))
        self._db.executemany("INSERT OR REPLACE INTO part VALUES (?, ?)", rows)

    def count_all_but(self, parts: Collection[str]) -> int:
        """How many files are in none of these parts of the table."""
        kept = self._files_in(parts)
        return sum(n not in kept for (n,) in self._db.execute("SELECT number FROM file")) if self._made else 0

    def forget_all_but(self, parts: Collection[str]) -> int:
        """Keep these parts of the table and their files; how many files went."""
        kept = self._files_in(parts)
        gone = [(n,) for (n,) in self._db.execute("SELECT number FROM file") if n not in kept]
        if gone:
            stay = np.array(sorted(kept), "<u4")
            rest = {}
            for number, body in self._bodies(range(_BUCKETS)).items():
                entries = np.frombuffer(body, _ENTRY)
                rest[number] = entries[np.isin(entries["file"], stay)].tobytes()
            self._write(rest)
            self._db.executemany("DELETE FROM file WHERE number = ?", gone)
        others = [(n,) for (n,) in self._db.execute("SELECT name FROM part") if n not in parts]
        self._db.executemany("DELETE FROM part WHERE name = ?", others)
        return len(gone)

    def _files_in(self, parts: Collection[str]) -> set[int]:
        return {n for numbers in self.known_parts(parts).values() for n in numbers.tolist()}

    # the root, and proving

    def begin(self, *, write: bool) -> None:
        """One view of the file, or one change of it, until the transaction ends."""
        self._db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        self._made = bool(tables)
        if not self._made and write:
            for statement in _SCHEMA.split(";"):
                self._db.execute(statement)
            self._name, self._made = secrets.token_bytes(16), True
            self._write({})
        elif self._made:
            self._read_root()

    def _read_root(self) -> None:
        row = self._db.execute("SELECT body FROM root WHERE one = 0").fetchone()
        if row is None:
            raise Damaged("it has no root")
        self._name, checks = row[0][:16], row[0][16:-16]
        self._prove(row[0][-16:], b"root", self._identity, checks)
        self._checks = np.frombuffer(checks, "<u4").copy()

    def _write(self, bodies: Mapping[int, bytes]) -> None:
        for number, body in bodies.items():
            self._checks[number] = self._check(number, body)
        self._db.executemany("INSERT OR REPLACE INTO bucket VALUES (?, ?)", bodies.items())
        checks = self._checks.tobytes()
        root = self._name + checks + self._digest(b"root", self._identity, checks)
        self._db.execute("INSERT OR REPLACE INTO root VALUES (0, ?)", (root,))

    def _bodies(self, numbers: Collection[int]) -> dict[int, bytes]:
        """The buckets of these numbers, each proven; those that were never written are left out."""
        asked = [n for n in numbers if self._checks[n]]
        found: dict[int, bytes] = dict(self._rows("SELECT number, body FROM bucket WHERE number IN ({})", asked))
        for number in asked:
            if self._check(number, found.get(number, b"")) != self._checks[number]:
                raise Damaged(f"bucket {number} is not what was written")
        return found

    def _rows(self, query: str, values: Sequence[Any]) -> list[Any]:
        found: list[Any] = []
        for start in range(0, len(values) if self._made else 0, _AT_ONCE):
            some = values[start : start + _AT_ONCE]
            found += self._db.execute(query.format(",".join("?" * len(some))), some)
        return found

    def _digest(self, *what: bytes | int) -> bytes:
        seen = xxhash.xxh3_128(self._name)
        for one in what:
            value = one if isinstance(one, bytes) else b"%d" % one
            seen.update(b"%d:" % len(value) + value)
        return seen.digest()

    def _prove(self, digest: bytes, *what: bytes | int) -> None:
        if digest != self._digest(*what):
            raise Damaged(f"a {what[0]!r} is not what was written")

    def _check(self, number: int, body: bytes) -> int:
        """Never zero, which stands for a bucket that was never written."""
        return xxhash.xxh3_64_intdigest(b"%d:" % number + body, number) % 0xFFFFFFFF + 1


def hash_ids(ids: Iterable[str | None], key: bytes) -> Hashes:
    """Of the ids that are there; null has none. `key`: of the store that they are looked up in, or added to."""
    begun = hashlib.blake2b(key=key, digest_size=8)

    def hashed(one: str) -> bytes:
        seen = begun.copy()
        seen.update(one.encode("utf-8", "surrogatepass"))  # nothing has what is no UTF-8: it is found nowhere
        return seen.digest()

    return np.frombuffer(b"".join([hashed(i) for i in ids if i is not None]), "<u8").astype(np.uint64)


@contextmanager
def open_store(path: Path, identity: str, *, write: bool) -> Iterator[IdStore]:
    """The store in one transaction. Raises `Damaged`, or `sqlite3.Error` where the file cannot be used."""
    # SQLite would make it for everybody to read; its journals take over the mode.
    if write:
        os.close(open_new(path, os.O_RDWR, 0o600))
    db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA cell_size_check = ON")
        store = IdStore(db, identity)
        store.begin(write=write)
        yield store
        db.execute("COMMIT")
    except (sqlite3.OperationalError, sqlite3.InterfaceError) as error:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _NOT_THE_FILE:
            raise
        raise Damaged(str(error)) from error
    except (sqlite3.DatabaseError, OverflowError, TypeError, ValueError, UnicodeError) as error:
        raise Damaged(f"{type(error).__name__}: {error}") from error
    finally:
        db.close()


_NOT_THE_FILE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_NOMEM,
}


def _bucket_of(hashes: Hashes) -> npt.NDArray[np.int64]:
    return (hashes >> np.uint64(50)).astype(np.int64)
