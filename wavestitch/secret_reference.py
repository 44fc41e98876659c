"""Secrets that are named and not written: `env:NAME` or `file:PATH`, looked up at the edge that needs them.

Reads one variable or one small plain file, and nothing else. Never prints or keeps what it found: nor does an error.
What a stream's file may name is a namespace of its own: variables `WAVESTITCH_PROOF_…`, files of one folder.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from wavestitch.contracts.chunk_proof import LEAST_KEY_BYTES, MOST_KEY_BYTES, ChunkProof
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.redaction import is_secret
from wavestitch.contracts.stream import Stream

MOST_SECRET_BYTES = 1 << 16
"""A chain of certificates with its key has less; and a name may be from a stream's file."""
_KINDS = ("env:", "file:")


def is_reference(value: str) -> bool:
    return value.startswith(_KINDS)


def look_up(reference: str, *, where: str, environment: Mapping[str, str] | None = None) -> bytes:
    """What `env:NAME` or `file:PATH` refers to; spaces and newlines at both ends are no part of it.

    `where`: what refers to it, for the sentence of `BadInput`, which is raised where it is not to be had.
    """
    kind, _, name = reference.partition(":")
    if kind == "env":
        given = os.environ if environment is None else environment
        if name not in given:
            raise BadInput(f"{where} is in the environment variable {name}, which is not set; set it where this runs")
        return given[name].encode(errors="surrogateescape").strip()
    path = Path(name)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise BadInput(f"{where} is in {path}, which is no plain file; name a file that holds it and nothing else")
        with path.open("rb") as file:
            found = file.read(MOST_SECRET_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{where} is in {path}: {error.strerror}; whoever runs this must be able to read it") from None
    except ValueError:  # a zero byte
        raise BadInput(f"{where} is in {path}: no file has such a name; correct it") from None
    if len(found) > MOST_SECRET_BYTES:
        raise BadInput(f"{where} is in {path}, which has more than {MOST_SECRET_BYTES} bytes; name the right file")
    return found.strip()


def proof_of(stream: Stream, *, keys: Path | None = None, environment: Mapping[str, str] | None = None) -> ChunkProof:
    """What the chunks of a stream must carry, its key looked up. Raises `BadInput` where that is not to be had.

    `keys`: the folder in which files with keys lie; without it a stream can name none.
    """
    if stream.proof != "mac":
        return ChunkProof(stream.proof, topic=stream.topic)
    where = f"the proof_key of stream {stream.name}"
    reference = str(stream.proof_key)
    if reference.startswith("file:"):
        reference = f"file:{_inside(keys, reference.removeprefix('file:'), where=where)}"
    key = look_up(reference, where=where, environment=environment)
    if not LEAST_KEY_BYTES <= len(key) <= MOST_KEY_BYTES:
        raise BadInput(f"{where} has {len(key)} bytes; allowed are {LEAST_KEY_BYTES} to {MOST_KEY_BYTES}")
    return ChunkProof("mac", key, stream.topic)


def _inside(keys: Path | None, name: str, *, where: str) -> Path:
    if keys is None:
        raise BadInput(
            f"{where} is in the file {name}, and the settings name no folder of keys; set key_folder (docs/settings.md)"
        )
    folder = keys.resolve()
    path = (folder / name).resolve()  # mounted secrets are links within their folder
    if not path.is_relative_to(folder):
        raise BadInput(f"{where} is in {keys / name}, a link out of the folder of keys; put the key itself there")
    return path


def resolve_secret(value: str, environment: Mapping[str, str] | None = None) -> str:
    """The value itself, or what `env:NAME` or `file:PATH` refers to."""
    if not is_reference(value):
        return value
    where = "what the settings refer to"
    try:
        return look_up(value, where=where, environment=environment).decode()
    except UnicodeDecodeError:  # not with what the library says of it: that has bytes of the secret
        raise BadInput(f"{where} by {value} is no text (UTF-8); correct what is there") from None


def resolve_secrets(section: Mapping[str, str], environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """A section with what its references refer to. `file://…` is an address, except where a secret must stand."""
    return {
        key: value if value.startswith("file://") and not is_secret(key) else resolve_secret(value, environment)
        for key, value in section.items()
    }
