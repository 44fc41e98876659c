"""Somebody is told, by a real HTTP server on loopback, or it is known that nobody was; and no secret is said."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.builders.webhook import Webhook, dripping_webhook, listening_webhook
from wavestitch.batch.call_out import _OF_THE_CALL
from wavestitch.batch.notify import notify
from wavestitch.contracts.quantities import Seconds
from wavestitch.settings_sections import Notify

SUBJECT, TEXT = "ecg: the gate is closed", "Batch 1 waits.\nAnswer under Required Actions."


@pytest.fixture(autouse=True)
def all_is_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever any library says, in a process that logs all."""
    caplog.set_level(logging.DEBUG)
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("httpx", "httpcore", "urllib3", "asyncio", "wavestitch"):
            monkeypatch.setattr(logging.getLogger(name), "level", logging.NOTSET)
            monkeypatch.setattr(logging.getLogger(name), "propagate", True)


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with listening_webhook() as found:
        yield found


def test_the_webhook_gets_subject_text_and_facts_and_the_log_the_same(
    webhook: Webhook, caplog: pytest.LogCaptureFixture
) -> None:
    assert notify(
        Notify(webhook=webhook.address),
        subject=SUBJECT,
        text=TEXT,
        facts={"stream": "ecg", "seconds": 3.5, "batch": None},
    )
    assert webhook.told == [
        {"subject": SUBJECT, "text": TEXT, "facts": {"stream": "ecg", "seconds": 3.5, "batch": None}}
    ]
    assert "the gate is closed: Batch 1 waits. Answer" in caplog.text


def test_the_token_and_an_address_by_reference_are_looked_up_when_they_are_used_and_said_nowhere(
    webhook: Webhook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "address").write_text(f"{webhook.address}/hunter1\n")
    monkeypatch.setenv("CANARY_TOKEN", "hunter2")
    ways = Notify(webhook=f"file:{tmp_path / 'address'}", token="env:CANARY_TOKEN")
    assert notify(ways, subject=SUBJECT, text=TEXT)
    webhook.status = 401
    assert not notify(ways, subject=SUBJECT, text=TEXT)
    ((path, headers, _), _) = webhook.calls
    assert (path, headers["Authorization"]) == ("/told/hunter1", "Bearer hunter2")
    assert "it answered 401" in caplog.text
    assert "hunter" not in caplog.text


def test_what_others_of_the_process_call_stays_in_its_log(webhook: Webhook, caplog: pytest.LogCaptureFixture) -> None:
    assert notify(Notify(webhook=webhook.address), subject=SUBJECT, text=TEXT)
    assert not [r for r in caplog.records if r.name.partition(".")[0] in ("httpx", "httpcore")]
    httpx.post(f"{webhook.address}/theirs", json={}, trust_env=False)
    assert "/theirs" in caplog.text


def test_what_does_not_take_it_is_an_answer_and_no_exception(
    webhook: Webhook, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    webhook.status = 500
    assert not notify(Notify(webhook=webhook.address), subject=SUBJECT, text=TEXT)
    (tmp_path / "address").write_text("http://hooks.example/hunter1")
    gone = [f"file:{tmp_path}/nowhere", "http://127.0.0.1:9/hunter1", f"file:{tmp_path / 'address'}"]
    assert not any(notify(Notify(webhook=address), subject=SUBJECT, text=TEXT) for address in gone)
    for said in ("it answered 500", "no answer (ConnectError)", "plain http beyond this machine", "No such file"):
        assert said in caplog.text
    assert "hunter" not in caplog.text


def test_no_redirection_is_followed_with_what_is_told(webhook: Webhook) -> None:
    with listening_webhook() as elsewhere:
        webhook.status, webhook.headers = 307, {"Location": elsewhere.address}
        assert not notify(Notify(webhook=webhook.address), subject=SUBJECT, text=TEXT)
        assert (len(webhook.calls), elsewhere.calls) == (1, [])


def test_a_proxy_of_the_environment_does_not_get_what_is_for_this_machine(
    webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listening_webhook() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.address)
        monkeypatch.setenv("ALL_PROXY", proxy.address)
        assert notify(Notify(webhook=webhook.address), subject=SUBJECT, text=TEXT)
        assert (len(webhook.calls), proxy.calls) == (1, [])
        monkeypatch.setenv("HTTPS_PROXY", proxy.address)
        for host in ("127.0.0.1", "localhost"):
            assert not notify(Notify(webhook=f"https://{host}:1/x"), subject=SUBJECT, text=TEXT)
        assert proxy.connects == []


FIRST_CALL = """
import logging, sys
logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
from wavestitch.batch.notify import notify
from wavestitch.settings_sections import Notify
assert notify(Notify(webhook="env:CANARY_ADDRESS", token="env:CANARY_TOKEN", log=False), subject="s", text="t")
logging.getLogger("ours").debug("was said")
"""


def test_the_first_call_of_a_process_says_no_more_than_the_later_ones(webhook: Webhook) -> None:
    secrets = {"CANARY_ADDRESS": f"{webhook.address}/hunter1", "CANARY_TOKEN": "hunter2"}
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CALL], env={**os.environ, **secrets}, capture_output=True, text=True, check=True
    )
    assert "was said" in done.stdout
    said = [line for line in done.stdout.splitlines() if line.split(":")[1].partition(".")[0] in _OF_THE_CALL]
    assert said == []


def test_an_answer_that_drips_in_holds_nobody_up_longer_than_the_time_out(caplog: pytest.LogCaptureFixture) -> None:
    with dripping_webhook() as address:
        began = time.monotonic()
        assert not notify(Notify(webhook=address, timeout=Seconds(1)), subject=SUBJECT, text=TEXT)
        assert time.monotonic() - began < 10
    assert "no answer in 1 s" in caplog.text


def test_what_strangers_wrote_cannot_write_lines_of_the_log_or_turn_text_round(
    webhook: Webhook, caplog: pytest.LogCaptureFixture
) -> None:
    hostile = "ecg\nERROR \u202eforged\x1b[2J"
    assert notify(Notify(webhook=webhook.address), subject=hostile, text=hostile, facts={"id": hostile})
    (told,) = webhook.told
    for said in (told["subject"], told["facts"]["id"]):
        assert said == "ecg\\x0aERROR \\u202eforged\\x1b[2J"
    assert len(caplog.text.splitlines()) == 1
    assert "\x1b" not in caplog.text
    assert "\u202e" not in caplog.text


@pytest.mark.parametrize(
    "said",
    [
        "<https://evil.example/x|Answer here>",
        "<!channel>",
        "<@U0PS>",
        "@here",
        "[Answer](https://evil.example)",
        "![](https://evil.example/p.png)",
        "[Answer][1]",
    ],
)
def test_what_strangers_wrote_is_no_link_under_another_name_and_calls_nobody_in_a_chat(
    webhook: Webhook, caplog: pytest.LogCaptureFixture, said: str
) -> None:
    assert notify(Notify(webhook=webhook.address), subject=f"ecg: {said}", text=f"source is {said}\nhttps://ours/run")
    (told,) = webhook.told
    for text in (told["subject"], told["text"]):
        assert said not in text
        assert not set("<>") & set(text)
        assert "](" not in text
        assert not re.search(r"(^|\W)@\w", text)
    assert told["text"].endswith("\nhttps://ours/run")
    assert said in caplog.text
