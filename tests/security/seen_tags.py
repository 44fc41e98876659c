"""What a browser would make of a page: its elements, and where it would go."""

from __future__ import annotations

from html.parser import HTMLParser


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # A script that lies elsewhere is where the page leads, too; one that stands in it is a tag.
        if tag != "script" or "src" not in dict(attrs):
            self.tags.add(tag)
        self.links += [v or "" for n, v in attrs if n in ("href", "src", "action", "style") or n.startswith("on")]


def tags_and_links(html: str) -> tuple[set[str], list[str]]:
    seen = _Seen()
    seen.feed(html)
    seen.close()
    return seen.tags, seen.links
