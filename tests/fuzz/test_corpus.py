"""Every seed and everything that a fuzzer once found goes through its target again; `make fuzz` looks for more."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.fuzz.account import Spent, add_to_account, read_account, still_to_run
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


def test_the_account_is_of_targets_and_whoever_had_least_goes_first(tmp_path: Path) -> None:
    assert set(read_account()) <= set(TARGETS)
    kept = tmp_path / "account.json"
    add_to_account("codec", Spent(100.0, 5, 7, 3), kept)
    assert add_to_account("codec", Spent(20.0, 5, 6, 4), kept) == Spent(120.0, 10, 7, 4)
    add_to_account("pattern", Spent(600.0), kept)
    left = still_to_run(["pattern", "codec", "ws_meta"], goal_seconds=600, spent=read_account(kept))
    assert list(left.items()) == [("ws_meta", 600.0), ("codec", 480.0)]


def test_the_corpus_is_small_and_each_folder_has_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= set(TARGETS)
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < _MOST_BYTES
