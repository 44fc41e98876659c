"""Mutants are what they say, are lived in by the tests, and each that survives has a reason."""

from __future__ import annotations

import gc
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator

from tests.conftest import ROOT
from tests.mutants.account import Tried, add_to_account, read_account, score
from tests.mutants.in_copy import TESTS, killed_in_copy
from tests.mutants.mutant import Mutant, mutants_of
from tests.mutants.operators import OURS, CatchNothing
from tests.mutants.planting import loaded_functions, planted_in_functions
from tests.mutants.reach import RanFile, RanTest, read_reach
from tests.mutants.targets import Chosen, chosen_tests, modules
from tests.mutants.trial import Subject, Trial

_PRODUCT = """
from __future__ import annotations

MOST: int = 7


class Counter:
    def __init__(self) -> None:
        self.seen = 0

    def add(self, number: int) -> bool:
        '''Whether 2 is 3.'''
        if number < MOST:
            self.seen += number
            return True
        raise ValueError(f"{number + 1} is too much")
"""
_TESTS = """
import sys
sys.path.insert(0, {folder!r})
from mutated_product import Counter


def test_numbers_are_added():
    c = Counter()
    assert c.add(3)
    assert c.add(3)
    assert c.seen == 6
"""


@pytest.mark.parametrize("operator", [CatchNothing, *OURS], ids=lambda o: o.__name__)
def test_an_operator_makes_of_its_examples_what_it_says(operator: type[Operator]) -> None:
    for example in operator.examples():
        made = mutate_code(example.pre_mutation_code, operator(), example.occurrence)
        assert made == example.post_mutation_code


def test_words_and_annotations_are_left_alone_and_each_fault_is_made_once() -> None:
    assert [m.name for m in mutants_of(_PRODUCT)] == [
        "Counter.add: `if number < MOST:` → `if number <= MOST:`",
        "Counter.add: `if number < MOST:` → `if number >= MOST:`",
        "Counter.add: `return True` → `return False`",
        "module: `MOST: int = 7` → `MOST: int = 8`",
        "module: `MOST: int = 7` → `MOST: int = 6`",
        "Counter.__init__: `self.seen = 0` → `self.seen = 1`",
        "Counter.__init__: `self.seen = 0` → `self.seen = -1`",
        "Counter.__init__: `self.seen = 0` → `pass`",
        "Counter.add: `self.seen += number` → `pass`",
        'Counter.add: `raise ValueError(f"{number + 1} is too much")` → `pass`',
    ]


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_function_is_exchanged_for_whoever_has_it_and_a_constant_is_not(tmp_path: Path) -> None:
    path = tmp_path / "exchanged.py"
    path.write_text(_PRODUCT)
    mine = loaded(path).Counter()
    made = {m.name: m.source for m in mutants_of(_PRODUCT)}
    constant, function = (
        made["module: `MOST: int = 7` → `MOST: int = 8`"],
        made["Counter.add: `return True` → `return False`"],
    )
    assert planted_in_functions(_PRODUCT, constant, str(path), loaded_functions({str(path)})[str(path)]) is None
    plant = planted_in_functions(_PRODUCT, function, str(path), loaded_functions({str(path)})[str(path)])
    assert plant is not None
    assert mine.add(1)
    plant()
    assert not mine.add(1)


def test_of_each_mutant_a_trial_says_whether_a_test_fails_on_it(tmp_path: Path) -> None:
    product, tests = tmp_path / "mutated_product.py", tmp_path / "test_mutated.py"
    product.write_text(_PRODUCT)
    tests.write_text(_TESTS.format(folder=str(tmp_path)))
    of_all = ("test_mutated.py::test_numbers_are_added",)
    chosen = Chosen({"Counter": of_all}, of_all)
    subject = Subject("mutated_product", product, chosen, mutants_of(_PRODUCT))
    assert "mutated_product" not in sys.modules
    tried = list(Trial([subject], tmp_path / "log", tmp_path).killed())
    assert {mutant.name for _, mutant, _ in tried} == {mutant.name for mutant in subject.mutants}
    survive = {mutant.name for _, mutant, killed in tried if not killed}
    assert survive == {
        "Counter.add: `if number < MOST:` → `if number <= MOST:`",
        "module: `MOST: int = 7` → `MOST: int = 8`",
        "module: `MOST: int = 7` → `MOST: int = 6`",
        'Counter.add: `raise ValueError(f"{number + 1} is too much")` → `pass`',
    }


class _OfTheParent:
    """In a circle of its own; whoever ends it in another process ends with that."""

    def __init__(self) -> None:
        self._pid, self._circle = os.getpid(), self

    def __del__(self) -> None:
        if os.getpid() != self._pid:
            os._exit(3)


def test_what_others_have_left_to_be_collected_is_not_ended_in_a_child(tmp_path: Path) -> None:
    product, tests = tmp_path / "mutated_beside.py", tmp_path / "test_beside.py"
    product.write_text(_PRODUCT)
    tests.write_text(_TESTS.format(folder=str(tmp_path)).replace("mutated_product", "mutated_beside"))
    test = ("test_beside.py::test_numbers_are_added",)
    kept = [m for m in mutants_of(_PRODUCT) if m.name == "module: `MOST: int = 7` → `MOST: int = 8`"]
    trial = Trial([Subject("mutated_beside", product, Chosen({}, test), kept)], tmp_path / "log", tmp_path)
    gc.disable()
    try:
        _OfTheParent()
        assert [is_killed for _, _, is_killed in trial.killed()] == [False]
    finally:
        gc.enable()


def test_a_test_that_fails_on_the_product_as_it_is_kills_nothing(tmp_path: Path) -> None:
    product, tests = tmp_path / "mutated_too.py", tmp_path / "test_wrong.py"
    product.write_text(_PRODUCT)
    code = _TESTS.format(folder=str(tmp_path)).replace("mutated_product", "mutated_too")
    tests.write_text(code + "\n\ndef test_nothing_is_right():\n    assert False\n")
    wrong, right = (f"test_wrong.py::test_{name}" for name in ("nothing_is_right", "numbers_are_added"))
    mutants = {m.name: m for m in mutants_of(_PRODUCT)}
    here = mutants["Counter.__init__: `self.seen = 0` → `self.seen = 1`"]
    loaded_anew = mutants["module: `MOST: int = 7` → `MOST: int = 8`"]

    def killed(*by: str) -> list[tuple[Mutant, bool]]:
        subject = Subject("mutated_too", product, Chosen({"Counter": by}, by), [here, loaded_anew])
        trial = Trial([subject], tmp_path / "log", tmp_path).killed()
        found: list[tuple[Mutant, bool]] = []
        with pytest.raises(RuntimeError, match="fail on the product as it is"):
            found.extend((mutant, is_killed) for _, mutant, is_killed in trial)
        return found

    assert killed(wrong) == []
    assert killed(wrong, right) == [(here, True)]


def test_a_reason_is_kept_as_long_as_its_mutant_survives(tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    add_to_account("a.py", Tried("1", 9, 9, 7, {"one": "equivalent: so it is", "two": "equivalent: that, too"}), path)
    assert add_to_account("a.py", Tried("2", 9, 9, 7, {"one": "", "three": ""}), path).survivors == {
        "one": "equivalent: so it is",
        "three": "",
    }


def test_every_survivor_has_a_reason_and_nearly_all_mutants_are_killed() -> None:
    known = read_account()
    assert set(known) <= set(modules())
    assert [f"{m}: {name}" for m, tried in known.items() for name, why in tried.survivors.items() if not why] == []
    assert sum(t.killed for t in known.values()) >= 0.95 * sum(t.tried for t in known.values())


def test_the_score_is_of_those_that_a_test_could_kill() -> None:
    some = Tried("1", 20, 10, 7, {"a": "equivalent: both are 1", "b": "another size, the same result", "c": ""})
    assert score([some, Tried("2", 9, 9, 9)]) == 16 / 18
    assert score([]) == 1.0


MODULE = "consumers/wanted.py"


def test_in_a_copy_of_the_tree_a_mutant_is_the_module_until_its_tests_have_ended(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "mutated_product.py").write_text(_PRODUCT)
    (copy / "test_mutated.py").write_text(_TESTS.format(folder=str(copy)))
    made = [m for m in mutants_of(_PRODUCT) if m.name.startswith("Counter.add: `return")]
    tests = ["test_mutated.py"]
    tried = list(killed_in_copy("mutated_product.py", tests, made, copy=copy))
    assert tried == [(mutant, True) for mutant in made]
    assert (copy / "mutated_product.py").read_text() == _PRODUCT
    (copy / "mutated_product.py").write_text(made[0].source)
    with pytest.raises(RuntimeError, match=r"tests of mutated_product.py fail on the product as it is"):
        next(killed_in_copy("mutated_product.py", tests, made, copy=copy))


def test_what_runs_elsewhere_is_tried_by_tests_that_are_there() -> None:
    assert TESTS.keys() <= set(modules())
    assert all((ROOT / test.partition("::")[0]).is_file() for tests in TESTS.values() for test in tests)


def ran(name: str, seconds: float, *functions: str, others: int = 0) -> RanTest:
    """`functions`: of the module; `others`: how many of another one."""
    ours = {f"{MODULE}:{f}" for f in functions}
    return RanTest(name, seconds, frozenset(ours | {f"consumers/other.py:f{n}" for n in range(others)}))


def chosen_of(*tests: RanTest, most: float = 12.0) -> Chosen:
    return chosen_tests(MODULE, {"a": RanFile("a", "", tests)}, most=most)


def test_of_each_function_the_closest_and_the_broadest_tests_are_tried_as_long_as_there_is_time() -> None:
    broad = [ran(f"broad {n}", 4.0 + n, "f", "g", others=20) for n in range(3)]
    found = chosen_of(*broad, ran("close", 3.0, "f", others=1), ran("beside", 0.5, "f", others=9), ran("other", 0.1))
    assert found.of("f: `a` → `b`") == ("close", "beside", "broad 0")
    assert found.of("g") == ("broad 0", "broad 1")
    assert found.of("f.inner: `a` → `b`") == found.of("f: `a` → `b`"), "a function within another one is run by it"
    assert found.of("never_run") == found.of("module") == found.of_all == ("close", "beside", "broad 0")
    assert found.tests == {"close", "beside", "broad 0", "broad 1"}


def test_each_file_of_tests_has_its_turn_beside_the_closest() -> None:
    many = [ran(f"a::close {n}", 3.0, "f", others=n) for n in range(9)]
    found = chosen_of(*many, ran("b::far", 3.0, "f", others=90), ran("c::farther", 3.0, "f", others=91), most=15.0)
    assert found.of("f") == ("a::close 0", "a::close 1", "b::far", "a::close 2", "c::farther")


def test_tests_of_a_file_that_is_named_as_the_module_are_closest() -> None:
    named, other = (
        ran(f"tests/{file}.py::test", 3.0, "f", others=n) for file, n in (("test_wanted_at_night", 90), ("test_x", 1))
    )
    assert chosen_of(other, named, most=3.0).of("f") == (named.name,)


def test_a_test_that_takes_longer_is_tried_where_there_is_no_other() -> None:
    assert chosen_of(ran("long", 90.0, "f"), ran("longer", 91.0, "f"), ran("quick", 1.0, "g")).of("f") == ("long",)
    assert chosen_of(ran("other", 1.0, others=3)).tests == set()


def test_what_a_file_of_tests_runs_is_noted(tmp_path: Path) -> None:
    noted, file = tmp_path / "reach.jsonl", "tests/unit/test_holes.py"
    subprocess.run([sys.executable, "-m", "tests.mutants.reach", str(noted), file], cwd=ROOT, check=True, timeout=120)
    found = read_reach(noted)[file]
    functions = set().union(*(test.functions for test in found.tests))
    assert "wavestitch/contracts/holes.py:HoleFinder.add" in functions
    assert {name.partition(":")[0] for name in functions} <= set(modules())
    assert not any(name.startswith("consumers/landing.py") for name in functions)


def test_what_is_set_up_for_several_tests_is_run_by_each_of_them(tmp_path: Path) -> None:
    noted, file = tmp_path / "reach.jsonl", "tests/domain/test_held_plot.py"
    subprocess.run([sys.executable, "-m", "tests.mutants.reach", str(noted), file], cwd=ROOT, check=True, timeout=300)
    tests = read_reach(noted)[file].tests
    assert len(tests) > 5
    assert all("wavestitch/contracts/batch_row.py:describe_head" in test.functions for test in tests)
