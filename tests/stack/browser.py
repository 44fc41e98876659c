"""A real Chromium, as it is installed, in which somebody is logged in to the Airflow of a test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from wavestitch.local.airflow_stack import Airflow

_SECONDS = 120
# It asks its makers' servers otherwise, and a proxy for what is on this machine.
QUIET = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--no-proxy-server", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]


@contextmanager
def logged_in(airflow: Airflow, user: str, path: str) -> Iterator[Any]:
    """This page of Airflow's, as this user sees it: Playwright's `Page`."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - it starts a program of its own

    chromium = shutil.which("chromium")
    assert chromium, "no Chromium is installed here; on Debian: apt-get install chromium"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=QUIET)
        try:
            page = browser.new_page(viewport={"width": 1300, "height": 1100}, locale="en-GB", timezone_id="UTC")
            page.set_default_timeout(_SECONDS * 1000)
            page.goto(f"{airflow.url}{path}")
            page.fill("input[name=username]", user)
            page.fill("input[name=password]", airflow.password(user))
            page.keyboard.press("Enter")
            page.wait_for_url(f"**{path}*")
            yield page
        finally:
            browser.close()
