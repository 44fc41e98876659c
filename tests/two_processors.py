"""How `make test` deals the tests out to its workers (pytest-xdist), and how they end.

A file stays whole on one worker, since its tests share what is dear to set up: a broker, Spark, a batch that was run.
Exceptions are listed here: files whose tests share nothing, and files that must not run at the same time. What is long
comes first, so that no worker is left alone with it in the end.
"""

from __future__ import annotations

import signal
from types import FrameType

import psutil
import pytest
from xdist import is_xdist_controller
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

_ONE_BY_ONE = frozenset(
    {
        "tests/domain/test_machine_catches_mutants.py",
        "tests/faults/test_broker_faults.py",
        "tests/faults/test_local_faults.py",
    }
)
"""Files of long tests that share nothing."""

_TOGETHER = {
    # A whole Airflow: two at a time take longer to come up than they are given. The first ones share theirs.
    "tests/stack/test_airflow_assets.py": "airflow",
    "tests/stack/test_airflow_backfill.py": "airflow",
    "tests/stack/test_airflow_decide.py": "airflow",
    "tests/stack/test_airflow_gate.py": "airflow",
    "tests/stack/test_airflow_promote.py": "airflow",
    "tests/stack/test_airflow_rewind.py": "airflow",
    "tests/stack/test_airflow_rights.py": "airflow",
    "tests/stack/test_airflow_stack.py": "airflow",
    "tests/stack/test_demo.py": "airflow",
    "tests/security/test_a_dag_run.py": "airflow",
    # A Spark that stays, one for all of them.
    "tests/faults/test_kill_points.py": "spark",
    "tests/broker/test_whole_batch.py": "spark",
    "tests/domain/test_reassemble_spark.py": "spark",
    "tests/domain/test_remote_spark.py": "spark",
    "tests/stack/test_ingest_dag.py": "spark",
    # A broker that knows its users.
    "tests/security/test_a_whole_run.py": "logins",
    "tests/security/test_least_privilege.py": "logins",
    "tests/security/test_login.py": "logins",
    "tests/security/test_untrusted_producer.py": "logins",
    # They bound the seconds and the memory that something takes.
    "tests/hostile/test_long_waveforms.py": "measured",
    "tests/hostile/test_memory.py": "measured",
    "tests/hostile/test_parser.py": "measured",
    "tests/hostile/test_yaml.py": "measured",
}
"""File to the group of files that run one after the other, in this order."""

_LONG_FIRST = (
    "airflow",
    "spark",
    "tests/histories/",
    "tests/faults/test_cluster_faults.py",
    "logins",
    "tests/faults/",
    "tests/domain/test_machine_catches_mutants.py",
    "tests/domain/test_protocol_machine.py",
    "tests/security/",
    "tests/stack/",
    "tests/broker/",
    "tests/hostile/",
    "tests/domain/",
)
"""What begins like this comes first, in this order."""

_STOP_SECONDS = 90
"""What a worker has started may take so long to stop."""


class BothProcessors(LoadScopeScheduling):
    """Deals out files, or what the lists above say instead, in the order in which they were collected.

    A worker that dies fails the test that it was at. What it had not begun is dealt out again, and nothing else:
    pytest-xdist 3.8 deals the test that killed it out once more, and whole files that are finished, too; who gets
    nothing but those waits for ever.
    """

    def remove_node(self, node: WorkerController) -> str | None:
        dealt_out = self.assigned_work.pop(node)
        not_ended = [nodeid for unit in dealt_out.values() for nodeid, ended in unit.items() if not ended]
        if not not_ended:
            return None
        for scope, unit in reversed(dealt_out.items()):
            if not_begun := {nodeid: False for nodeid in unit if nodeid in not_ended[1:]}:
                self.workqueue[scope] = not_begun
                self.workqueue.move_to_end(scope, last=False)
        for other in self.nodes:
            self._reschedule(other)
        return not_ended[0]

    def _reschedule(self, node: WorkerController) -> None:
        super()._reschedule(node)
        # A worker begins its last test only when it knows the next one.
        while self.workqueue and self._pending_of(self.assigned_work[node]) < 2 and not node.shutting_down:
            self._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def unit_of(nodeid: str) -> str:
    """The name of what is dealt out together with this test."""
    file = nodeid.partition("::")[0]
    return nodeid if file in _ONE_BY_ONE else _TOGETHER.get(file, file)


def long_first(items: list[pytest.Item]) -> None:
    """Sort the tests as they are to be dealt out."""

    in_order = {file: i for i, file in enumerate(_TOGETHER)}

    def place(item: pytest.Item) -> tuple[int, int]:
        unit = unit_of(item.nodeid)
        first = next((i for i, start in enumerate(_LONG_FIRST) if unit.startswith(start)), len(_LONG_FIRST))
        return first, in_order.get(item.nodeid.partition("::")[0], -1)

    items.sort(key=place)


def end_in_order() -> None:
    """A run that is told to end (a deadline, an impatient person) must still stop what it started: once is enough."""
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)


def _end(_signal: int, _frame: FrameType | None) -> None:
    # Both processes of a run may be told, and told again while they are at it.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def end_workers(session: pytest.Session) -> None:
    """Tell the workers of this run to end, and wait until they have stopped what they started."""
    if not session.config.pluginmanager.hasplugin("xdist") or not is_xdist_controller(session):
        return
    nodes = list(session.config.pluginmanager.getplugin("dsession")._active_nodes)
    for worker in psutil.Process().children():
        worker.terminate()
    for node in nodes:
        node.channel.waitclose(_STOP_SECONDS)
