"""HTML that a browser shows without loading anything: only plain elements and attributes of a page are kept.

Pure. A list of what may stay rather than of what must go: names and ids on a page come from producers, who must not be
able to put a script or a link into it, and a new version of the tool that made the page cannot bring new hosts.
"""

from __future__ import annotations

from html.parser import HTMLParser

from markupsafe import Markup

from wavestitch.contracts.harmless import for_html, harmless_lines

_BLOCKS = frozenset(("div", "p", "pre", "hr", "ul", "ol", "li", "h1", "h2", "h3", "h4", "h5", "h6"))
_INLINE = frozenset(("span", "a", "strong", "b", "em", "i", "small", "code", "br"))
_TABLES = frozenset(("table", "thead", "tbody", "tr", "th", "td"))
_KEPT = _BLOCKS | _INLINE | _TABLES
_EMPTY = frozenset(("br", "hr"))
_DROPPED_WHOLE = frozenset(("script", "style", "title", "footer", "button", "svg", "iframe", "object", "select"))
_MOST = 20_000
_KEPT_ATTRIBUTES = frozenset(("id", "class", "colspan", "rowspan"))


def plain_body(html: str) -> Markup:
    """The body of a page, reduced to plain elements; links only to places inside the page."""
    reader = _Plain()
    reader.feed(html)
    reader.close()
    return Markup("".join(reader.kept))  # noqa: S704 - what is kept is listed above


class _Plain(HTMLParser):
    """Keeps text and listed elements, in order; `depth` counts how deep inside a dropped element the text is."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.kept: list[str] = []
        self.dropped = ""
        self.depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.depth:
            self.depth += tag == self.dropped
        elif tag in _DROPPED_WHOLE:
            self.dropped, self.depth = tag, 1
        elif tag in _KEPT:
            self.kept.append(f"<{tag}{''.join(_attribute(n, v) for n, v in attrs)}>")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.depth:
            self.depth -= tag == self.dropped
        elif tag in _KEPT - _EMPTY:
            self.kept.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if not self.depth:
            self.kept.append(str(Markup.escape(harmless_lines(data, most=_MOST))))


def _attribute(name: str, value: str | None) -> str:
    inside = name == "href" and (value or "").startswith("#")
    return f' {name}="{for_html(value or "")}"' if inside or name in _KEPT_ATTRIBUTES else ""
