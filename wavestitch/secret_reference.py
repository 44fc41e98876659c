"""Secrets that are named and not written: `env:NAME` or `file:PATH`, looked up at the edge that needs them.

Reads one variable or one small plain file, and nothing else. Never prints or keeps what it found.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from wavestitch.contracts.chunk_proof import LEAST_KEY_BYTES, MOST_KEY_BYTES, ChunkProof
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.stream import Stream


def proof_of(stream: Stream, *, environment: Mapping[str, str] | None = None) -> ChunkProof:
    """What the chunks of a stream must carry, its key looked up. Raises `BadInput` where that is not to be had."""
    if stream.proof != "mac":
        return ChunkProof(stream.proof, topic=stream.topic)
    where = f"the proof_key of stream {stream.name}"
    key = _read(str(stream.proof_key), where, os.environ if environment is None else environment)
    if not LEAST_KEY_BYTES <= len(key) <= MOST_KEY_BYTES:
        raise BadInput(f"{where} has {len(key)} bytes; allowed are {LEAST_KEY_BYTES} to {MOST_KEY_BYTES}")
    return ChunkProof("mac", key, stream.topic)


def _read(reference: str, where: str, environment: Mapping[str, str]) -> bytes:
    kind, _, name = reference.partition(":")
    if kind == "env":
        if name not in environment:
            raise BadInput(f"{where} is in the environment variable {name}, which is not set; set it for the readers")
        return environment[name].strip().encode()
    path = Path(name)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise BadInput(f"{where} is in {path}, which is no plain file; name a file that holds the key")
        with path.open("rb") as file:
            # More than any key has, and no more: the name is from a stream's file.
            return file.read(MOST_KEY_BYTES + 3).strip()
    except OSError as error:
        raise BadInput(f"{where} is in {path}: {error.strerror}; see to it that readers may read it") from None
