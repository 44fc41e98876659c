"""YAML as far as people write it: plain values, lists and mappings. What it says is what it seems to say.

Refuses what makes a small text large (aliases), what makes two readers disagree (a key twice) and what is no plain data
(tags for sets, bytes and objects). Every fault of a text is `BadInput`, never an exception of the library's.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from wavestitch.contracts.errors import BadInput

MAX_CHARS = 64 * 1024
_MOST_BITS = 64
_NOT_PLAIN = ("binary", "set", "omap", "pairs")


class _PlainLoader(yaml.SafeLoader):
    """Only what plain data need; the stages of PyYAML's loader that would let more through are narrowed."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark: Any = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise ConstructorError(None, None, "aliases (*name) are not read here: write the value out", mark)
        found: yaml.Node | None = super().compose_node(parent, index)
        return found

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        found = super().construct_scalar(node)
        try:
            str(found).encode()
        except UnicodeEncodeError:
            raise ConstructorError(None, None, "a text is not valid Unicode", node.start_mark) from None
        return found

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            found = super().construct_object(node, deep=deep)
            # Python counts as far as memory goes, and then refuses to write the number down.
            if isinstance(found, int) and found.bit_length() > _MOST_BITS:
                said = f"a number has more than {_MOST_BITS} bits; put quotes around it where it is a text"
                raise ConstructorError(None, None, said, node.start_mark)
            return found
        except (ValueError, LookupError, AttributeError, OverflowError):
            # `2001-99-99` and `!!int x`: PyYAML takes the text for what it seems to be, and does not look again.
            said = f"a value is no {node.tag.rpartition(':')[2]}; put quotes around it where it is a text"
            raise ConstructorError(None, None, said, node.start_mark) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise ConstructorError(None, None, "a key occurs twice in one mapping", key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


_PlainLoader.yaml_constructors = {
    tag: made
    for tag, made in yaml.SafeLoader.yaml_constructors.items()
    if tag is None or tag.rpartition(":")[2] not in _NOT_PLAIN
}


def read_plain_yaml(text: str, *, where: str) -> Any:
    """What the one document of a text says. `where` names the file in the message."""
    if len(text) > MAX_CHARS:
        raise BadInput(f"{where} has {len(text)} characters; allowed are {MAX_CHARS}: make it shorter")
    try:
        return yaml.load(text, _PlainLoader)  # noqa: S506 - a narrower loader than the safe one
    except (yaml.YAMLError, RecursionError) as error:
        at = getattr(error, "problem_mark", None)
        line = f" at line {at.line + 1}" if at else ""
        said = getattr(error, "problem", None) or "cannot be read"
        raise BadInput(f"{where} is not YAML{line}: {said[:200]}", for_guests=True) from None
