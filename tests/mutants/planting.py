"""A mutant in the place of a module: at once, in functions that are loaded, or as what an import of it finds.

Functions are exchanged by their code, so that whoever imported one has the mutant, too. What a module works out as it
is loaded (constants, defaults, classes) is changed by loading it so.
"""

from __future__ import annotations

import gc
import importlib.util
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from importlib.abc import MetaPathFinder, SourceLoader
from importlib.machinery import ModuleSpec
from types import CodeType, FunctionType, ModuleType
from typing import Any

Key = tuple[str, int]
"""A function's qualified name and how many of that name came before it."""


def loaded_functions(paths: Collection[str]) -> dict[str, list[FunctionType]]:
    """All that each of these files has made so far, wherever they are."""
    found: dict[str, list[FunctionType]] = {path: [] for path in paths}
    for one in gc.get_objects():
        # By its own type: what stands for something that is not loaded yet would load it, if it were asked.
        if type(one) is FunctionType and one.__code__.co_filename in found:
            found[one.__code__.co_filename].append(one)
    return found


def planted_in_functions(
    original: str, mutated: str, path: str, loaded: Sequence[FunctionType]
) -> Callable[[], None] | None:
    """What exchanges the functions that differ; None where more than functions differ, or one is not to be found."""
    old, new = (compile(source, path, "exec", dont_inherit=True) for source in (original, mutated))
    if _outside(old) != _outside(new):
        return None
    functions, wanted = dict(_functions(old)), dict(_functions(new))
    changed = [key for key in functions if _face(functions[key]) != _face(wanted[key])]
    if not changed or any(functions[k].co_freevars != wanted[k].co_freevars for k in changed):
        return None
    places = {(functions[k].co_qualname, functions[k].co_firstlineno): wanted[k] for k in changed}
    found = [
        (f, code)
        for f in loaded
        if (code := places.get((f.__code__.co_qualname, f.__code__.co_firstlineno))) is not None
    ]
    if {code for _, code in found} != set(places.values()):
        return None

    def plant() -> None:
        for function, code in found:
            function.__code__ = code

    return plant


def _is_class(code: CodeType) -> bool:
    return "__qualname__" in code.co_names and not code.co_flags & 2  # no fast locals


def _inner(code: CodeType) -> list[CodeType]:
    return [c for c in code.co_consts if isinstance(c, CodeType)]


def _functions(code: CodeType) -> Iterator[tuple[Key, CodeType]]:
    """Those that the module and its classes define; what is nested in a function belongs to it."""
    seen: dict[str, int] = {}
    waiting = _inner(code)
    while waiting:
        one = waiting.pop(0)
        if _is_class(one):
            waiting += _inner(one)
        else:
            number = seen[one.co_qualname] = seen.get(one.co_qualname, -1) + 1
            yield (one.co_qualname, number), one


def _outside(code: CodeType) -> Any:
    """What the module and its classes do as they are loaded."""
    parts = [_face(c, deep=False) for c in [code]]
    return parts, [_outside(c) for c in _inner(code) if _is_class(c)], [k for k, _ in _functions(code)]


def _face(code: CodeType, *, deep: bool = True) -> Any:
    """What a code does, without where its lines are."""
    inner = [_face(c) for c in _inner(code)] if deep else []
    plain = [(type(c), c) for c in code.co_consts if not isinstance(c, CodeType)]
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, plain, inner


class PlantedModule(MetaPathFinder, SourceLoader):  # type: ignore[misc]
    """Put first in `sys.meta_path`, before the module is imported."""

    def __init__(self, name: str, path: str, source: str) -> None:
        self._name, self._path, self._source = name, path, source

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        return importlib.util.spec_from_file_location(fullname, self._path, loader=self)

    def get_filename(self, fullname: str) -> str:
        return self._path

    def get_data(self, path: str | bytes) -> bytes:
        if path != self._path:
            raise FileNotFoundError(path)  # bytecode that is kept is of another source
        return self._source.encode()


def plant_before_import(name: str, path: str, source: str) -> None:
    assert name not in sys.modules, f"{name} is loaded already"
    sys.meta_path.insert(0, PlantedModule(name, path, source))
