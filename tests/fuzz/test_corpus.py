"""Every seed and everything that a fuzzer once found goes through its target again; `make fuzz` looks for more."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.fuzz.all_targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
_MOST_BYTES = 200 << 10
_MOST_SECONDS = 5.0


def inputs(name: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_nothing_that_was_ever_found_is_found_again(name: str) -> None:
    target = TARGETS[name]
    for data in [b"", *target.seeds(), *inputs(name)]:
        begun = time.monotonic()
        target.run(data)
        assert time.monotonic() - begun < _MOST_SECONDS, ascii(data[:200])


def test_the_corpus_is_small_and_each_folder_has_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= set(TARGETS)
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < _MOST_BYTES
