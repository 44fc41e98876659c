"""The gate is loaded while readers are at work, where the same process will ask it and there is something to ask; and
no two plans are taken for one another."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.domain.maintenance_rig import Rig
from wavestitch.batch.deployment_edges import DeploymentEdges

PROGRAM = """
import json, sys, threading
from pathlib import Path
from tests.builders.streams import make_stream
from tests.builders.plans import make_plan
from tests.domain.maintenance_rig import Rig
from wavestitch.batch.deployment_edges import DeploymentEdges

folder, ahead, expectations = Path(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])
edges = DeploymentEdges(Rig(folder).deployment, "ecg", read=lambda **_: [], gate_ahead=ahead)
plan = make_plan(stream=make_stream(topic="t", expectations=expectations))
begun = []
start = threading.Thread.start
threading.Thread.start = lambda thread: (begun.append(thread), start(thread))
for _ in range(2):
    edges.read(plan, [], progress=lambda *_: None)
for thread in begun:
    thread.join()
print(json.dumps([len(begun), "wavestitch.validation.checkpoint" in sys.modules]))
"""
RULE = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "units"}}


@pytest.mark.parametrize(
    ("ahead", "expectations", "loaded"),
    [(True, [RULE], [1, True]), (False, [RULE], [0, False]), (True, [], [0, False])],
    ids=["it will be asked", "another process will ask it", "there is nothing to ask"],
)
def test_the_gate_is_loaded_once_and_only_where_it_will_be_asked(
    tmp_path: Path, *, ahead: bool, expectations: list[object], loaded: list[object]
) -> None:
    said = [str(tmp_path), json.dumps(ahead), json.dumps(expectations)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *said], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == loaded


def test_each_plan_has_sixteen_hex_digits_of_its_own_by_chance(tmp_path: Path) -> None:
    edges = DeploymentEdges(Rig(tmp_path).deployment, "ecg")
    drawn = [edges.nonce() for _ in range(100)]
    assert len(set(drawn)) == 100
    assert all(re.fullmatch("[0-9a-f]{16}", one) for one in drawn)
