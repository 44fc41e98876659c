"""The texts of pages are made beside the event loop, in which everybody else's requests wait."""

from __future__ import annotations

import asyncio
import threading

import pytest
from fastapi import Request

from wavestitch.ui.answer import page_answer


@pytest.mark.parametrize("form", ["html", "json"])
def test_while_the_text_of_a_page_is_made_others_are_answered(form: str) -> None:
    answered = threading.Event()

    def made() -> str:
        assert answered.wait(10), "nobody was answered meanwhile"
        return "a text"

    async def story() -> bytes:
        asyncio.get_running_loop().call_later(0.01, answered.set)
        request = Request({"type": "http", "query_string": f"format={form}".encode(), "headers": []})
        return bytes((await page_answer(request, html=made, facts=lambda: {"said": made()})).body)

    assert b"a text" in asyncio.run(asyncio.wait_for(story(), 30))
