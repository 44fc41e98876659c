"""Answers of a REST catalog that ended before they were whole.

Against a length that is said the library holds what came. A connection that is lost within the head of an answer leaves
none: what came is taken for all of it, and an empty body for what the catalog says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from requests import Response

_BODILESS = (204, 205, 304)
_ELSEWHERE = 300


def refuse_cut(answer: Response) -> None:
    """Raises `requests.ConnectionError` where the end of the connection was that of the answer, and it is no JSON, or
    leads elsewhere and does not say where to. What a server has refused stays refused: of that its status counts."""
    said, status = answer.headers, answer.status_code
    length_said = said.get("content-length", "").isdigit() or said.get("transfer-encoding", "").lower() == "chunked"
    if not 200 <= status < 400 or status in _BODILESS or answer.is_redirect or answer.request.method == "HEAD":
        return
    if length_said and status < _ELSEWHERE:  # its head may end before `Location`, though it has said a length
        return
    try:
        answer.json()
    except ValueError:
        from requests import ConnectionError as Lost  # noqa: PLC0415 - a SQL catalog does without

        raise Lost(f"its answer ended after {len(answer.content)} bytes, in its midst", response=answer) from None
