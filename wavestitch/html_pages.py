"""Every page that we write, from templates. Plain values in, text out; no script, no picture, nothing from elsewhere.

The one place where text becomes HTML: what a template is given is made harmless and escaped, and only `Markup` is taken
for HTML. A template that names a value which it was not given is an error, never an empty place.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from wavestitch.contracts.harmless import harmless
from wavestitch.contracts.quantities import clock


def render_page(template: str, **values: Any) -> str:
    """The page that `templates/TEMPLATE.html` makes of `values`."""
    return _environment().get_template(f"{template}.html").render(values)


def whole_page(title: str, body: Markup) -> str:
    """A page around `body`."""
    return render_page("layout", title=title, body=body)


def number(value: int | None) -> Markup:
    """With narrow spaces, which do not break."""
    return Markup("–" if value is None else f"{value:,}".replace(",", "&#8239;"))  # noqa: S704 - digits


def clock_or_none(ms: int) -> str:
    """A page says once that its times are UTC."""
    return clock(ms).removesuffix("Z") if ms else "–"


def sentence(text: str) -> Markup:
    """A sentence of ours, the commands in it as such: they stand in backticks."""
    parts = [escape(harmless(part)) for part in text.split("`")]
    return Markup("").join(Markup("<code>{}</code>").format(part) if n % 2 else part for n, part in enumerate(parts))


def _shown(value: Any) -> Any:
    return harmless(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@lru_cache(maxsize=1)
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("wavestitch", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": number, "clock": clock_or_none, "sentence": sentence}
    return made
