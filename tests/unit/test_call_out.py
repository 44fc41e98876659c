"""One call to whom the settings name: which answers are good ones, and how long a single one is waited for."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.builders.webhook import Webhook, listening_webhook
from wavestitch.batch.call_out import Callee, call_out
from wavestitch.contracts.errors import BadInput, Transient
from wavestitch.contracts.quantities import Seconds


def callee(webhook: Webhook, **otherwise: Any) -> Callee:
    said = {"what": "webhook", "section": "[notify]", "address": webhook.address, "token": None, "timeout": Seconds(30)}
    return Callee(**{**said, **otherwise})


@pytest.mark.parametrize("status", [200, 204, 298, 299])
def test_whatever_begins_with_a_two_is_a_good_answer(status: int) -> None:
    with listening_webhook() as webhook:
        webhook.status = status
        call_out(callee(webhook), b"{}", "application/json")
        assert webhook.bodies == [b"{}"]


@pytest.mark.parametrize("status", [300, 304, 404, 500])
def test_any_other_answer_is_said_and_the_call_may_be_made_again(status: int) -> None:
    with listening_webhook() as webhook:
        webhook.status = status
        with pytest.raises(Transient, match=rf"^calling the webhook of \[notify\]: it answered {status}, and was to"):
            call_out(callee(webhook), b"{}", "application/json")


def test_no_single_wait_is_longer_than_the_whole_call_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[httpx.Timeout] = []

    class Seen(httpx.Client):
        def __init__(self, **how: Any) -> None:
            super().__init__(**how)
            made.append(self.timeout)

    monkeypatch.setattr(httpx, "Client", Seen)
    with listening_webhook() as webhook:
        for seconds in (30, 600):
            call_out(callee(webhook, timeout=Seconds(seconds)), b"{}", "application/json")
    assert made == [httpx.Timeout(30), httpx.Timeout(600)]


@pytest.mark.parametrize("token", ["two\nlines", "schlüssel"])
def test_a_token_that_no_header_can_have_calls_nobody(token: str) -> None:
    with listening_webhook() as webhook:
        with pytest.raises(BadInput, match=r"token of \[notify\] is not one line of plain characters"):
            call_out(callee(webhook, token=token), b"{}", "application/json")
        assert webhook.calls == []
