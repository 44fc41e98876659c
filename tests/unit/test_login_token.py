"""When a token is read anew, and what is none."""

from __future__ import annotations

import base64
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.builders.tokens import renew, token
from wavestitch.contracts.errors import BadInput, Terminal
from wavestitch.kafka.login_token import LONGEST_SECONDS, read_token, tells_token

NOW = 1_800_000_000.0


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "token"


@pytest.mark.parametrize(
    ("claims", "until"),
    [
        ({"exp": NOW + 10}, NOW + 10),
        ({"exp": int(NOW) + 3600}, NOW + LONGEST_SECONDS),
        ({"exp": "tomorrow"}, NOW + LONGEST_SECONDS),
        ({"exp": True}, NOW + LONGEST_SECONDS),
        ({"exp": None}, NOW + LONGEST_SECONDS),
        ({"exp": float("nan")}, NOW + LONGEST_SECONDS),
        ({"exp": 10**400}, NOW + LONGEST_SECONDS),
    ],
)
def test_a_token_is_believed_until_it_ends_and_a_minute_at_most(
    file: Path, claims: dict[str, Any], until: float
) -> None:
    renew(file, token("ada", **claims) + "\n")
    assert read_token(f"file:{file}", now=NOW).until == until


@pytest.mark.parametrize("text", ["opaque", "a.b", "a.!!!.c", "a..c", "a.e30.c", f"a.{'W' * 40_000}.c"])
def test_a_token_that_does_not_say_when_it_ends_is_read_anew_within_a_minute(file: Path, text: str) -> None:
    renew(file, text)
    if "!" in text:
        with pytest.raises(BadInput, match="is no token"):
            read_token(f"file:{file}", now=NOW)
    else:
        assert read_token(f"file:{file}", now=NOW).until == NOW + LONGEST_SECONDS


def test_claims_that_are_nested_without_end_are_no_claims(file: Path) -> None:
    deep = base64.urlsafe_b64encode(b"[" * 40_000).decode().rstrip("=")
    renew(file, f"a.{deep}.c")
    assert read_token(f"file:{file}", now=NOW).until == NOW + LONGEST_SECONDS


@pytest.mark.parametrize("text", ["", "hush\x01auth=Bearer x", "hush hush", "hush\u00e9", "two\nhush"])
def test_what_is_no_token_is_sent_to_nobody_and_not_shown(file: Path, text: str) -> None:
    renew(file, text)
    with pytest.raises(BadInput, match=r"is no token .* let the file hold it and nothing else") as refused:
        read_token(f"file:{file}", now=NOW)
    assert "hush" not in refused.value.message


def test_a_token_that_has_ended_says_who_has_to_write_another(file: Path) -> None:
    renew(file, token("ada", exp=NOW - 90))
    with pytest.raises(Terminal, match="ended 90 s ago; whoever writes that file"):
        read_token(f"file:{file}", now=NOW)
    renew(file, token("ada", exp=-(10**400)))
    with pytest.raises(Terminal, match="ended"):
        read_token(f"file:{file}", now=NOW)


def test_the_client_is_told_what_is_in_the_file_when_it_asks(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    tell = tells_token(f"file:{file}")
    renew(file, "first")
    assert tell("")[0] == "first"
    renew(file, "second")
    assert tell("")[0] == "second"
    file.unlink()
    with caplog.at_level(logging.ERROR), pytest.raises(BadInput):
        tell("")
    assert f"is in {file}: No such file" in caplog.text
    assert "second" not in caplog.text
