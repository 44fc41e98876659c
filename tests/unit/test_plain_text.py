"""What people write is one short printable line; what strangers wrote is harmless in every medium."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.streams import make_stream
from tests.security.hostile_text import HOSTILE_TEXTS
from wavestitch.batch.request import check_gate
from wavestitch.batch.rewind import Target, plan_rewind
from wavestitch.batch.work_folder import WorkFolder
from wavestitch.contracts.errors import BadInput, Fenced, Terminal, Transient, error_from_json
from wavestitch.contracts.harmless import for_html, for_markdown, harmless, harmless_lines, in_shell, is_plain, named
from wavestitch.contracts.plain_text import ACCEPTED_MISSING, MAX_SAID, name_of_person, said_by_person
from wavestitch.contracts.quantities import EpochMs
from wavestitch.kafka.connection import Disconnected, OutOfTime
from wavestitch.kafka.inflate import Uninflatable

ANY_TEXT = st.text(st.characters(codec=None), max_size=300)


def test_a_reason_of_five_hundred_printable_characters_is_taken_as_it_is() -> None:
    reason = ("Wiederholt: Sensor 4 – «défekt», 心電図 " * 20)[:MAX_SAID].strip()
    assert said_by_person(f"  {reason}\n", "the reason (why)") == reason


def test_words_that_a_backfill_goes_by_are_nobodys_reason() -> None:
    with pytest.raises(BadInput, match="which only a head that was made anew may say"):
        said_by_person(f"as agreed; {ACCEPTED_MISSING}nothing", "the reason (why)")


@pytest.mark.parametrize(
    "name",
    [f"x; {ACCEPTED_MISSING}all", "x; accepted as missing", "accepted as\nmissing", "accepted as \tmissing"],
)
def test_words_that_a_backfill_goes_by_are_in_nobodys_name(name: str) -> None:
    """A note has a colon and a blank behind a name."""
    assert ACCEPTED_MISSING not in f"rewind by {name_of_person(name)}: to see"
    assert "accepted" not in name_of_person(f"{ACCEPTED_MISSING}{ACCEPTED_MISSING}")


def test_nothing_said_is_nothing() -> None:
    assert said_by_person(None, "why") == said_by_person(" \n ", "why") == ""


def test_one_character_more_is_refused_with_the_limit() -> None:
    with pytest.raises(BadInput, match=r"the reason \(why\) has 501 characters; allowed are 500"):
        said_by_person("x" * 501, "the reason (why)")


@pytest.mark.parametrize(
    "odd", ["\n", "\x1b", "\x00", "\u202e", "\u200b", "\u2028", "\ud800", "\u3164", "\ufe0f", "\x9b"]
)
def test_a_character_that_nobody_sees_is_refused_by_number_and_place(odd: str) -> None:
    with pytest.raises(BadInput, match=r"has the character \\[xuU][0-9a-f]+ at place 3"):
        said_by_person(f"ab{odd}cd", "the note")


def test_a_name_from_a_login_is_shown_for_what_it_is() -> None:
    assert name_of_person("eve\x1b[2J") == r"eve\x1b[2J"
    assert len(name_of_person("x" * 10_000)) <= 101


@given(ANY_TEXT)
def test_harmless_text_is_one_printable_line_and_stays_the_same_when_done_twice(text: str) -> None:
    shown = harmless(text)
    assert is_plain(shown)
    assert harmless(shown) == shown
    shown.encode()


@given(st.text(st.characters(categories=["L", "N", "P", "S"], max_codepoint=0x2FF), max_size=300))
def test_plain_text_is_not_changed(text: str) -> None:
    assert harmless(text) == text


@pytest.mark.parametrize("kind", HOSTILE_TEXTS)
def test_no_medium_lets_a_hostile_text_through(kind: str) -> None:
    text = HOSTILE_TEXTS[kind]
    assert len(harmless(text)) <= 2001
    assert all(is_plain(line) for line in harmless_lines(text).split("\n"))
    assert not set('<>"') & set(for_html(text))
    span = for_markdown(text)
    assert span == "" or (span[0] == span[-1] == "`" and "`" not in span[1:-1] and is_plain(span))


@pytest.mark.parametrize("kind", HOSTILE_TEXTS)
def test_an_error_names_hostile_text_harmlessly_and_crosses_a_process(kind: str) -> None:
    error = Transient(f"the topic {HOSTILE_TEXTS[kind]} is away")
    assert is_plain(error.message)
    assert is_plain(str(error))
    assert error_from_json(error.to_json()).message == error.message


def test_an_error_of_one_part_s_own_kind_is_of_the_kind_above_it_in_another_process() -> None:
    """A broker that is away is no reason to give up for good."""
    for kind, known in ((Disconnected, Transient), (OutOfTime, Transient), (Uninflatable, Terminal), (Fenced, Fenced)):
        assert kind("m").kind == known.__name__, "as the terminal names it"
        found = error_from_json(json.loads(json.dumps(kind("m", n=2).to_json())))
        assert (type(found), found.message, found.facts) == (known, "m", {"n": 2})


@pytest.mark.parametrize("facts", [5, "a", [1], {"message": 1}, {"self": 1, "n": 2}, None])
def test_an_error_of_another_process_is_an_error_whatever_its_facts(facts: Any) -> None:
    found = error_from_json({"error": "Transient", "message": "m", "facts": facts})
    assert (type(found), found.message) == (Transient, "m")
    assert found.facts == ({"n": 2} if isinstance(facts, dict) and "n" in facts else {})


def refused_reasons(tmp_path: Path) -> dict[str, Callable[[str], object]]:
    """Every way by which a person's reason comes in; each ends before anything is asked of a table or a log."""
    nobody: Any = None
    stream = make_stream(topic="t")
    return {
        "gate": lambda why: check_gate("park", why),
        "rewind": lambda why: plan_rewind(stream, Target(word="end"), log=nobody, tables=nobody, who="me", why=why),
        "abandon": lambda why: WorkFolder(tmp_path, "ecg", "0" * 32).abandon(who="me", why=why, at_ms=EpochMs(0)),
    }


@pytest.mark.parametrize("way", ["gate", "rewind", "abandon"])
@pytest.mark.parametrize("why", ["A" * 1_000_000, "x\x1b]0;t\x07\x1b[2J"])
def test_no_way_in_takes_a_reason_that_is_long_or_moves_a_cursor(way: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"the reason \(why\) has"):
        refused_reasons(tmp_path)[way](why)


def test_a_character_is_named_in_as_few_digits_as_python_does() -> None:
    for c in "\x00\x1b\xff\u0100\u202e\uffff\U00010000\U000e0001":
        assert named(c) == c.encode("unicode_escape").decode()


def test_html_has_no_more_of_a_text_than_it_is_to_show() -> None:
    assert for_html("<" * 9, most=2) == "&lt;&lt;…"


@pytest.mark.parametrize("text", ["plain", "two words", "it's", "a\nb", "\x1bf0", "ü\u202eab12", "'\\$(x)\t0"])
def test_a_word_for_a_shell_is_that_word_to_bash_and_in_one_line(text: str) -> None:
    said = in_shell(text)
    assert is_plain(said)
    shell = subprocess.run(["/bin/bash", "-c", f"printf %s {said}"], capture_output=True, check=True)
    assert shell.stdout.decode() == text


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ("\x1bzag0", r"$'\x1bzag0'"),
        # A digit behind an escape would be taken for a part of it, and so would those behind that.
        ("\x1b0aFg9", r"$'\x1b\x30\x61\x46g9'"),
        ("\x1b'!\\ G", r"$'\x1b\x27\x21\x5c G'"),
        ("é\n", r"$'\xc3\xa9\x0a'"),
    ],
)
def test_a_word_for_a_shell_has_escapes_where_they_are_needed_and_nowhere_else(value: str, word: str) -> None:
    assert in_shell(value) == word


def test_an_error_says_eight_thousand_characters_of_what_happened_and_shows_that_there_were_more() -> None:
    assert Terminal("x" * 8000).message == "x" * 8000
    assert Terminal("x" * 8001).message == str(Terminal("x" * 9999)) == "x" * 8000 + "…"
