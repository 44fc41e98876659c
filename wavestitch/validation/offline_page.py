"""HTML that a browser shows without loading anything: only plain elements and attributes of a page are kept.

Pure. A list of what may stay rather than of what must go: names and ids on a page come from producers, who must not be
able to put a script or a link into it, and a new version of the tool that made the page cannot bring new hosts.
"""

from __future__ import annotations

from html import escape
from html.parser import HTMLParser

_BLOCKS = frozenset(("div", "p", "pre", "hr", "ul", "ol", "li", "h1", "h2", "h3", "h4", "h5", "h6"))
_INLINE = frozenset(("span", "a", "strong", "b", "em", "i", "small", "code", "br"))
_TABLES = frozenset(("table", "thead", "tbody", "tr", "th", "td"))
_KEPT = _BLOCKS | _INLINE | _TABLES
_EMPTY = frozenset(("br", "hr"))
_DROPPED_WHOLE = frozenset(("script", "style", "title", "footer", "button", "svg", "iframe", "object", "select"))
_KEPT_ATTRIBUTES = frozenset(("id", "class", "colspan", "rowspan"))

# Even what slipped through could not be loaded or run.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2730; background: #fff; margin: 0 auto; max-width: 75rem;
  padding: 1.5rem; }
h1 { font-size: 1.5rem; } h2, h3, h4, h5 { font-size: 1.1rem; margin: 1.6rem 0 .4rem; }
h6 { font-size: .95rem; margin: .8rem 0 .2rem; }
a { color: #0b5cad; } a:not([href]) { color: inherit; } p { margin: .4rem 0; } small, .muted { color: #5b6770; }
table { border-collapse: collapse; width: 100%; margin: .4rem 0 1rem; }
th, td { border: 1px solid #d5dbe0; padding: .35rem .6rem; text-align: left; vertical-align: top;
  overflow-wrap: anywhere; }
th { background: #f2f5f7; } th, td.short { white-space: nowrap; } td ul { margin: 0; padding-left: 1.1rem; }
code, .badge { background: #eef2f5; border-radius: .2rem; padding: 0 .25rem; font-family: ui-monospace, monospace; }
.passed { color: #17692f; font-weight: 600; } .failed { color: #a81c1c; font-weight: 600; }
.reported { color: #8a5a00; font-weight: 600; }
i.fa-check-circle::before { content: "\\2713 passed"; color: #17692f; font-style: normal; font-weight: 600; }
i.fa-times::before { content: "\\2717 failed"; color: #a81c1c; font-style: normal; font-weight: 600; }
i.fa-exclamation-triangle::before { content: "! error"; color: #8a5a00; font-style: normal; font-weight: 600; }
/* Of Great Expectations' pages: empty headings of tables, what only works with scripts, what our way home replaces. */
.breadcrumb, .cooltip > span, .card.mb-3, .table-sm thead, a[href*="collapse"] { display: none; }
td .table-sm thead { display: table-header-group; } i.fas::before { margin-right: .3rem; }
@media (prefers-color-scheme: dark) {
  body { background: #14191d; color: #dfe5ea; } th { background: #20272d; } th, td { border-color: #37424b; }
  code, .badge { background: #252d34; } a { color: #7db7f0; } small, .muted { color: #9aa7b1; }
  .passed, i.fa-check-circle::before { color: #6fcf88; } .failed, i.fa-times::before { color: #ff8f8f; }
  .reported, i.fa-exclamation-triangle::before { color: #e5b95c; }
}
"""


def page(title: str, body: str) -> str:
    """A whole page around `body`, which must be safe HTML already."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{_STYLE}</style></head>\n'
        f"<body>\n{body}\n</body></html>\n"
    )


def plain_body(html: str) -> str:
    """The body of a page, reduced to plain elements; links only to places inside the page."""
    reader = _Plain()
    reader.feed(html)
    reader.close()
    return "".join(reader.kept)


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
            self.kept.append(escape(data, quote=False))


def _attribute(name: str, value: str | None) -> str:
    inside = name == "href" and (value or "").startswith("#")
    return f' {name}="{escape(value or "")}"' if inside or name in _KEPT_ATTRIBUTES else ""
