"""Answers of a REST catalog that ended before they were whole.

Against a length that is said the library holds what came. A connection that is lost within the head of an answer leaves
none: what came is taken for all of it, and an empty body for what the catalog says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from requests import Response

_BODILESS = (204, 205, 304)


def refuse_cut(answer: Response) -> None:
    """Raises `requests.ConnectionError` where the end of the connection was that of the answer, and it is no JSON, or
    leads elsewhere and does not say where to. What a server has refused stays refused: of that its status counts."""
    said = answer.headers
    length_said = said.get("content-length", "").isdigit() or said.get("transfer-encoding", "").lower() == "chunked"
    has_body = 200 <= answer.status_code < 400 and answer.status_code not in _BODILESS and not answer.is_redirect
    if not has_body or length_said or answer.request.method == "HEAD":
        return
    try:
        answer.json()
    except ValueError:
        from requests import ConnectionError as Lost  # noqa: PLC0415 - a SQL catalog does without

        raise Lost(f"its answer ended after {len(answer.content)} bytes, in its midst", response=answer) from None
