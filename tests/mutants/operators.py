"""What faults are made: cosmic-ray's operators that mean something here, and five of ours that it lacks.

Of its comparisons those that move a boundary or turn it round; never `==` into `is`. Annotations, decorators and what a
sentence says (formatted strings, facts of an error) are left alone: no promise hangs on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cosmic_ray.ast import get_ast
from cosmic_ray.exceptions import CosmicRayTestingException
from cosmic_ray.operators.exception_replacer import ExceptionReplacer
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.operators.provider import OperatorProvider

Node = Any
"""Of parso's tree."""
Positions = Iterator[tuple[tuple[int, int], tuple[int, int]]]

_COMPARISONS = ("Eq_NotEq", "NotEq_Eq", "Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt")
_OTHER_COMPARISONS = ("Is_IsNot", "IsNot_Is")
_ARITHMETIC = (
    *("Add_Sub", "Sub_Add", "Mul_FloorDiv", "Div_Mul", "FloorDiv_Mul", "Mod_FloorDiv", "Pow_Mul"),
    *("BitOr_BitAnd", "BitAnd_BitOr", "BitXor_BitOr", "LShift_RShift", "RShift_LShift"),
)
_WORDS = (
    *("AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ExceptionReplacer", "NumberReplacer"),
    *("ZeroIterationForLoop", "ReplaceUnaryOperator_Delete_Not", "ReplaceUnaryOperator_Delete_USub"),
)
_ASSIGNED = ("=", "+=", "-=", "*=", "|=", "&=", "//=")


class CatchNothing(ExceptionReplacer):  # type: ignore[misc]
    """cosmic-ray's, which knows no exceptions with a dot in their names."""

    @staticmethod
    def _name_nodes(node: Node) -> Sequence[Node]:
        what = node.children[1]
        if what.type != "atom":
            return (what,)
        inner = what.children[1]
        return inner.children[::2] if inner.type == "testlist_comp" else (inner,)

    def mutate(self, node: Node, index: int) -> Node:
        name = self._name_nodes(node)[index]
        leaf = name.get_first_leaf()
        leaf.value = CosmicRayTestingException.__name__
        if leaf is not name:
            name.children[:] = [leaf]
        return node

    @classmethod
    def examples(cls) -> Sequence[Example]:
        nothing = CosmicRayTestingException.__name__
        return (
            Example("try: f()\nexcept E: pass", f"try: f()\nexcept {nothing}: pass"),
            Example("try: f()\nexcept a.E as e: pass", f"try: f()\nexcept {nothing} as e: pass"),
            Example("try: f()\nexcept (a.b.E, F): pass", f"try: f()\nexcept ({nothing}, F): pass"),
        )


class DropStatement(Operator):  # type: ignore[misc]
    """A statement that is there for its effect: a call, a raise, a change in place."""

    def mutation_positions(self, node: Node) -> Positions:
        if node.type == "simple_stmt" and _has_effect(node.children[0]):
            yield node.children[0].start_pos, node.children[0].end_pos

    def mutate(self, node: Node, index: int) -> Node:
        node.children[0] = get_ast(node.children[0].get_first_leaf().prefix + "pass")
        return node

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (
            Example("f(x)\n", "pass\n"),
            Example("x[1] = 2\n", "pass\n"),
            Example("x += 2\n", "pass\n"),
            Example("if x:\n    raise y\n", "if x:\n    pass\n"),
        )


def _has_effect(node: Node) -> bool:
    if node.type == "raise_stmt":
        return True
    if node.type == "expr_stmt":
        target, what = node.children[0], node.children[1]
        sign = what.get_first_leaf().value
        return sign in _ASSIGNED and (sign != "=" or target.type == "atom_expr")
    return node.type in {"atom_expr", "power"} and node.get_last_leaf().value == ")"


class DropKeyword(Operator):  # type: ignore[misc]
    """An argument that is given by its name: what is called takes its default."""

    def mutation_positions(self, node: Node) -> Positions:
        return iter([(node.children[at].start_pos, node.children[at].end_pos) for at in self._named(node)])

    @staticmethod
    def _named(node: Node) -> list[int]:
        if node.type not in {"arglist", "trailer"}:
            return []
        found = enumerate(node.children)
        return [i for i, c in found if c.type == "argument" and str(c.children[1].get_code()).strip() == "="]

    def mutate(self, node: Node, index: int) -> Node:
        at = self._named(node)[index]
        node.children[at : at + 2] = [c for c in node.children[at + 1 : at + 2] if c.get_code().strip() != ","]
        return node

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (
            Example("f(a, b=1)", "f(a,)"),
            Example("f(b=1)", "f()"),
            Example("f(b=1, c=2)", "f( c=2)"),
            Example("f(b=1, c=2)", "f(b=1,)", 1),
        )


class DropCondition(Operator):  # type: ignore[misc]
    """A comprehension takes everything."""

    def mutation_positions(self, node: Node) -> Positions:
        if node.type == "comp_if":
            yield node.children[1].start_pos, node.children[1].end_pos

    def mutate(self, node: Node, index: int) -> Node:
        node.children[1] = get_ast(" True")
        return node

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (Example("[x for x in y if x > 1]", "[x for x in y if True]"),)


class TurnMembership(Operator):  # type: ignore[misc]
    """`in` is `not in`, and the other way round."""

    def mutation_positions(self, node: Node) -> Positions:
        return iter([(node.children[at].start_pos, node.children[at].end_pos) for at in self._words(node)])

    @staticmethod
    def _words(node: Node) -> list[int]:
        if node.type != "comparison":
            return []
        return [i for i, c in enumerate(node.children) if c.get_code().split() in (["in"], ["not", "in"])]

    def mutate(self, node: Node, index: int) -> Node:
        at = self._words(node)[index]
        node.children[at] = get_ast(" in" if "not" in node.children[at].get_code() else " not in")
        return node

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (Example("x in y", "x not in y"), Example("x not in y", "x in y"))


_SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list", "reversed": "list"}


class SwapWord(Operator):  # type: ignore[misc]
    """The other end, the other quantifier, no order."""

    def mutation_positions(self, node: Node) -> Positions:
        if node.type == "name" and node.value in _SWAPPED and node.get_next_leaf().value == "(":
            yield node.start_pos, node.end_pos

    def mutate(self, node: Node, index: int) -> Node:
        node.value = _SWAPPED[node.value]
        return node

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (Example("min(a, b)", "max(a, b)"), Example("sorted(a)", "list(a)"))


OURS: tuple[type[Operator], ...] = (DropStatement, DropKeyword, DropCondition, TurnMembership, SwapWord)


def all_operators() -> list[Operator]:
    theirs = OperatorProvider()
    names = [f"ReplaceComparisonOperator_{name}" for name in (*_COMPARISONS, *_OTHER_COMPARISONS)]
    names += [f"ReplaceBinaryOperator_{name}" for name in _ARITHMETIC]
    made = {"ExceptionReplacer": CatchNothing}
    return [made.get(name, theirs[name])() for name in (*names, *_WORDS)] + [ours() for ours in OURS]


def means_something(operator: Operator, leaf: Node) -> bool:
    """`leaf`: where it begins. Otherwise it changes words or annotations, or does what another operator does, too."""
    child, node = leaf, leaf.parent
    while node is not None:
        if node.type in {"fstring", "decorator", "import_from", "import_name", "tfpdef"}:
            return False
        if node.type == "annassign" and child is node.children[1]:
            return False
        if node.type == "funcdef" and child is node.annotation:
            return False
        if node.type == "raise_stmt" and isinstance(operator, DropKeyword):
            return False
        if node.type == "argument" and node.children[0].get_code().strip() == "strict":
            return False  # of `zip`: it asks for what is so always
        if node.type == "if_stmt" and node.children[1].get_code().strip() == "TYPE_CHECKING":
            return False
        child, node = node, node.parent
    # A comparison, a membership and a `not` are turned round by operators of their own.
    return type(operator).__name__ != "AddNot" or _condition(leaf) not in {"comparison", "not_test"}


def _condition(leaf: Node) -> str:
    """The kind of the condition that begins with this leaf."""
    node = leaf
    while node.parent is not None and node.parent.type not in {"if_stmt", "while_stmt", "assert_stmt", "test"}:
        node = node.parent
    return str(node.type)
