"""The mutants of a module's source: each a name that stays while lines move, and the source with one fault in it."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

from tests.mutants.operators import all_operators, means_something


@dataclass(frozen=True, slots=True)
class Mutant:
    """`name`: the function and what becomes of which line in it."""

    name: str
    source: str


def mutants_of(source: str) -> list[Mutant]:
    """All of them, each once, in the order of the operators; what is no Python is none."""
    tree, places = get_ast(source), _places(source)
    found: dict[str, str] = {}
    names: Counter[str] = Counter()
    for operator in all_operators():
        positions = [p for node in ast_nodes(tree) for p in operator.mutation_positions(node)]
        for occurrence, (begin, _) in enumerate(positions):
            if not means_something(operator, tree.get_leaf_for_position(begin, include_prefixes=True)):
                continue
            made = mutate_code(source, operator, occurrence)
            if made is None or made in found or not _compiles(made):
                continue
            name = f"{places.get(begin[0], 'module')}: {_change(source, made)}"
            names[name] += 1
            found[made] = name if names[name] == 1 else f"{name} #{names[name]}"
    return [Mutant(name, made) for made, name in found.items()]


def _compiles(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _places(source: str) -> dict[int, str]:
    """By line, the innermost function or class that it is in."""
    found: dict[int, str] = {}

    def walk(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                mine = f"{name}.{child.name}" if name else child.name
                found.update(dict.fromkeys(range(child.lineno, (child.end_lineno or 0) + 1), mine))
                walk(child, mine)
            else:
                walk(child, name)

    walk(ast.parse(source), "")
    return found


def _change(source: str, made: str) -> str:
    """The lines that differ, as they were and as they are."""
    old, new = source.splitlines(), made.splitlines()
    while old and new and old[0] == new[0]:
        del old[0], new[0]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    was, now = (" ".join(" ".join(lines).split()) for lines in (old, new))
    return f"`{was}` → `{now}`"
