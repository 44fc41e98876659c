"""What came from elsewhere is never code and never part of a command (checks 1 and 5): held by lint, and by structure.

The linter's rules are proven to be on, each place that starts a process is named here, and so is each exception.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.security.hostile_names import COMMANDS, PATHS
from tests.stack.airflow_home import load_dags, prepare_airflow, write_settings
from wavestitch.batch.request import check_gate, earlier_plan, plan_request, rewind_target
from wavestitch.batch.rewind import Target
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.harmless import is_plain
from wavestitch.contracts.plain_text import MAX_SAID

prepare_airflow()

PRODUCT = ("wavestitch", "consumers", "spark_apps", "dags", "plugins")
BREACHES = {
    "S301": "import pickle\npickle.loads(b'')\n",
    "S302": "import marshal\nmarshal.loads(b'')\n",
    "S307": "eval(input())\n",
    "S102": "exec(input())\n",
    "S506": "import yaml\nyaml.load('', Loader=yaml.Loader)\n",
    "S602": "import subprocess\nsubprocess.run(input(), shell=True)\n",
    "S604": "def run(command, shell): ...\nrun(input(), shell=True)\n",
    "S605": "import os\nos.system(input())\n",
    "S606": "import os\nos.execv(input(), [])\n",
    "S607": "import subprocess\nsubprocess.run(['ls'])\n",
    "S608": "x = input()\nq = f'SELECT a FROM b WHERE c = {x}'\n",
    "S701": "import jinja2\njinja2.Environment()\n",
}
EXCEPTIONS = {
    "spark_apps/end_with_parent.py": {"S606"},  # takes the place of this process by an argv list
    "wavestitch/batch/deployment.py": {"S607"},  # git, wherever it is
    "wavestitch/contracts/plain_yaml.py": {"S506"},  # with a loader that is narrower than the safe one
    "wavestitch/flows/old_runs_process.py": {
        "S606"
    },  # itself once more, by an argv list of a module's name and numbers
    "wavestitch/tables/id_cache.py": {"S608"},  # as many question marks as there are values
}
STARTERS = {
    "consumers/unit_processes.py",
    "spark_apps/end_with_parent.py",
    "spark_apps/start_archive.py",
    "spark_apps/submit.py",
    "wavestitch/batch/deployment.py",
    "wavestitch/local/broker.py",
    "wavestitch/local/jars.py",
    "wavestitch/local/java.py",
    "wavestitch/flows/old_runs.py",  # of a module of ours, with two numbers
    "wavestitch/flows/old_runs_process.py",
    "wavestitch/local/process.py",
}
_STARTS = re.compile(r"(subprocess\.(run|call|check_call|check_output|Popen|getoutput|getstatusoutput))"
                     r"|(os\.(system|popen|exec\w+|spawn\w+|posix_spawnp?|fork\w*))|pty\.\w+")  # fmt: skip
_LOADERS = ("pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib", "jsonpickle")


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for top in PRODUCT:
        for path in sorted((ROOT / top).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def _starts(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _STARTS.fullmatch(ast.unparse(node.func)):
            yield node


@pytest.mark.parametrize(
    "place", ["wavestitch/batch/x.py", "consumers/x.py", "spark_apps/x.py", "dags/x.py", "plugins/x.py"]
)
def test_the_linter_finds_a_breach(place: str) -> None:
    argv = ["ruff", "check", "--no-cache", "--output-format=concise", "--stdin-filename", place, "-"]
    text = "".join(BREACHES.values())
    found = subprocess.run(
        [sys.executable, "-m", *argv], input=text, cwd=ROOT, capture_output=True, text=True, check=False
    )
    missed = [rule for rule in BREACHES if f" {rule} " not in found.stdout]
    assert missed == [], f"these are off in {place}: {found.stdout}{found.stderr}"


def test_every_exception_to_those_rules_is_named_here() -> None:
    found: dict[str, set[str]] = {}
    for top in PRODUCT:
        for path in (ROOT / top).rglob("*.py"):
            for codes in re.findall(r"noqa: ([A-Z0-9, ]+)", path.read_text()):
                rules = {c.strip() for c in codes.split(",")} & set(BREACHES)
                if rules:
                    found.setdefault(path.relative_to(ROOT).as_posix(), set()).update(rules)
            assert not re.search(r"(ruff|flake8): *noqa", path.read_text()), f"{path}: a file is not exempt as a whole"
    assert found.items() <= EXCEPTIONS.items(), "look at the new exception, then name it here"


def test_processes_are_started_in_known_places_from_lists_of_words() -> None:
    for name, tree in _modules():
        for call in _starts(tree):
            assert name in STARTERS, f"{name}:{call.lineno} starts a process; look at what goes into it, then name it"
            words = call.args[0] if call.args else None
            is_text = isinstance(words, ast.JoinedStr) or (
                isinstance(words, ast.Constant) and isinstance(words.value, str)
            )
            first = ast.unparse(call.func).startswith("subprocess.")
            assert not (first and is_text), f"{name}:{call.lineno} hands over one text instead of a list of words"
            assert not any(k.arg == "shell" for k in call.keywords), f"{name}:{call.lineno} asks for a shell"


def test_nothing_can_load_objects_from_bytes() -> None:
    for name, tree in _modules():
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            bad = [n for n in names if n.split(".")[0] in _LOADERS]
            assert not bad, f"{name}:{getattr(node, 'lineno', '')} imports {bad}; data are JSON, Arrow or Parquet"
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                loads_objects = called in ("eval", "exec", "compile", "__import__") or called.endswith("allow_pickle")
                assert not loads_objects, f"{name}:{node.lineno} calls {called}"
                allowed = {k.arg: ast.unparse(k.value) for k in node.keywords}.get("allow_pickle", "False")
                assert allowed == "False", f"{name}:{node.lineno} lets an array file hold objects"


def test_the_airflow_here_does_not_make_objects_of_xcoms() -> None:
    """Before 3.2.0 a crafted XCom was executed in the API server."""
    assert tuple(int(n) for n in version("apache-airflow").split(".")[:2]) >= (3, 2)


@pytest.fixture
def dags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    (tmp_path / "streams").mkdir()
    (tmp_path / "streams" / "ecg.yaml").write_text("topic: t\ngroup: g\n")
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(write_settings(tmp_path, streams=tmp_path / "streams")))
    return dict(load_dags().dags)


def test_no_task_is_a_command_and_no_template_takes_what_somebody_typed(dags: dict[str, Any]) -> None:
    assert {"ingest_ecg", "rewind_ecg"} <= set(dags)
    for dag_id, dag in dags.items():
        for task in dag.tasks:
            kinds = {c.__name__ for c in type(task).__mro__} | {getattr(task, "task_type", "")}
            for kind in (
                "BashOperator",
                "SSHOperator",
                "SparkSubmitOperator",
                "PythonVirtualenvOperator",
                "DockerOperator",
            ):
                assert not any(kind in k for k in kinds), f"DAG {dag_id}, task {task.task_id} is a {kind}"
            said = " ".join(str(getattr(task, field, "")) for field in getattr(task, "template_fields", ()))
            for word in ("params", "dag_run", "conf[", ".conf", "run_id"):
                assert not re.search(rf"\{{[\{{%][^}}]*{re.escape(word)}", said), f"{dag_id}.{task.task_id}: {said}"


@pytest.mark.parametrize(
    "typed",
    [c.format(marker="/tmp/never") for c in COMMANDS] + [p for p in PATHS if p.strip()],
    ids=lambda x: ascii(x)[:40],
)
def test_what_is_typed_into_a_form_is_a_place_in_the_log_or_refused(typed: str) -> None:
    for params in ({"offsets": typed}, {"interval": typed}):
        with pytest.raises(BadInput):
            plan_request("manual", None, params)
    if re.fullmatch(r"[a-z-]+", typed.strip()):
        assert rewind_target(typed) == Target(word=typed.strip())  # refused where it is none of the known words
    else:
        with pytest.raises(BadInput):
            rewind_target(typed)
    with pytest.raises(BadInput):
        check_gate(typed, "why")
    if is_plain(typed.strip()) and len(typed) <= MAX_SAID:
        assert check_gate("park", typed) == ("park", typed.strip())  # free text: recorded, and nothing else
    else:
        with pytest.raises(BadInput):
            check_gate("park", typed)
    assert earlier_plan("manual", {"plan_id": typed}) == typed.strip()  # a plan's folder refuses it
