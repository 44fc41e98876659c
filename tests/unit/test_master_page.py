"""When a standalone master has forgotten the application that stays on it: it is then started again, and not before."""

from __future__ import annotations

from typing import Any

import pytest

from spark_apps.master_page import AFTERWARDS_S, AT_FIRST_S, Looks, state_on

EVERY = 10


def page(*apps: str, status: str = "ALIVE", state: str = "RUNNING") -> dict[str, Any]:
    return {"status": status, "activeapps": [{"name": name, "state": state} for name in apps]}


OURS, WITHOUT_WORKERS, OTHERS = page("wavestitch"), page("wavestitch", state="WAITING"), page("somebody's")
AWAY, RECOVERING = None, page(status="RECOVERING")


def ended_after(*looks: dict[str, Any] | None) -> int | None:
    """Seconds until it is found to be forgotten; the last look goes on for ever."""
    seen = Looks("wavestitch", since=0.0)
    more = [*looks, *[looks[-1]] * 100]
    return next((n * EVERY for n, found in enumerate(more) if seen.has_forgotten(found, now=float(n * EVERY))), None)


@pytest.mark.parametrize("looks", [[OURS], [AWAY], [RECOVERING], [OURS, AWAY], [OURS, WITHOUT_WORKERS]])
def test_one_that_the_master_knows_or_that_nobody_can_ask_about_goes_on(looks: list[dict[str, Any] | None]) -> None:
    assert ended_after(*looks) is None


def test_one_that_a_master_knew_and_does_not_know_any_more_is_ended_soon() -> None:
    assert ended_after(OURS, AWAY, AWAY, OTHERS) == 2 * EVERY + AFTERWARDS_S + EVERY
    assert ended_after(OURS, OTHERS, OURS, page()) == 2 * EVERY + AFTERWARDS_S + EVERY


def test_one_that_has_only_begun_has_time_to_be_known() -> None:
    assert ended_after(*[OTHERS] * 20, OURS) is None
    assert ended_after(OTHERS) == AT_FIRST_S + EVERY


def test_the_state_is_of_the_application_that_was_asked_for() -> None:
    assert (state_on(OURS, "wavestitch"), state_on(OTHERS, "wavestitch")) == ("RUNNING", None)
