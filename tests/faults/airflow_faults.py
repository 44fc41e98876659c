"""Airflow in trouble (rows 7, 22 and 25 of the matrix): the DAG of a stream, with real Kafka, Spark and tables.

Attempt 2 of a task runs beside a living attempt 1; success is not reported and the task is tried again; Airflow's own
database is locked or away while a task runs. Only the scheduler is left out. Proves I1, I2, I4, I6 and I7.
"""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import threading
from collections.abc import Callable, Iterator
from typing import Any

from consumers.unit_reader import read_here
from spark_apps.in_process import stitch_here
from tests.builders.published_bytes import published_bytes
from tests.deployment_rig import eventually
from tests.faults.fault_class import Bench, Counts, FaultClass, Need
from tests.faults.local_faults_batch import make_ledger
from tests.faults.local_faults_watch import Fault, How, run_watched
from tests.stack.airflow_home import make_database, prepare_airflow, write_settings
from tests.stack.dag_lab import STREAM, Lab, Run, answers, run_here, waveform
from wavestitch.batch import steps
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.results import Read, Reassembled, Validated, result_from_json, together
from wavestitch.contracts.errors import Transient, WavestitchError
from wavestitch.contracts.quantities import Partition
from wavestitch.local.broker import Broker
from wavestitch.settings import load_settings

STEPS = ("reassemble", "validate", "publish", "commit_offsets")
_STREAM = "ecg"
_RESTART_SECONDS = 1.5
_CHUNKS = 4


@contextlib.contextmanager
def laboratory(bench: Bench) -> Iterator[Lab]:
    """A stream of its own, whose DAG runs in this process."""
    prepare_airflow()
    make_database()
    streams = bench.folder / "streams"
    streams.mkdir()
    (streams / f"{_STREAM}.yaml").write_text(STREAM.format(topic=make_ledger(bench.bootstrap).topic))
    config = write_settings(bench.folder, streams=streams, bootstrap=bench.bootstrap, java_home=bench.java_home)
    before = os.environ.get("WAVESTITCH_CONFIG")
    os.environ["WAVESTITCH_CONFIG"] = str(config)
    try:
        lab = Lab(Deployment(load_settings()), Broker(bench.bootstrap, 0, bench.folder))
        eventually(lambda: answers(lab), seconds=60)
        yield lab
    finally:
        if before is None:
            del os.environ["WAVESTITCH_CONFIG"]
        else:
            os.environ["WAVESTITCH_CONFIG"] = before


class Zombie:
    """Attempt 1 of a task that Airflow believes dead: the same step with the same inputs, in a process of its own.

    It stops at its `nth` call on a file and goes on when `release` is set.
    """

    def __init__(self, lab: Lab, task: str, nth: int) -> None:
        self._lab = lab
        self._task = task
        self._nth = nth
        self._thread: threading.Thread | None = None
        self.release = threading.Event()
        self.end = "never ran"

    def rise(self, context: Any) -> None:
        """As the task begins for the first time: it lives on elsewhere, and here its heartbeat is lost."""
        if self._thread is not None:
            return
        task = context["task"]
        found = [*task.op_args, *task.op_kwargs.values()]
        inputs = [i if isinstance(i, str | dict) else list(i) for i in found]  # what other tasks left may be lazy
        self._thread = threading.Thread(target=self._live, args=(inputs,))
        self._thread.start()
        raise Transient("the heartbeat of this attempt was lost")

    def finish(self) -> str:
        assert self._thread is not None, "the task was never tried"
        self.release.set()
        self._thread.join()
        return self.end

    def _live(self, inputs: list[Any]) -> None:
        folder = self._lab.deployment.settings.landing.parent
        hold = Fault(None, self._nth, How.HOLD, release=self.release)
        arguments = [os.environ["WAVESTITCH_CONFIG"], self._task, inputs]
        self.end = str(run_watched(attempt, arguments, folder=folder, fault=hold, seconds=200).result)


def attempt(config: str, task: str, inputs: list[Any]) -> str:
    """What the task's body does, and how it ends, in one word."""
    deployment = Deployment(load_settings({"WAVESTITCH_CONFIG": config}))
    stream, *inputs = inputs
    edges = DeploymentEdges(deployment, stream, read=read_here, submit=stitch_here)
    bodies: dict[str, Callable[..., Any]] = {
        "reassemble": lambda plan_id, reads: steps.step_reassemble(
            edges, plan_id, together([result_from_json(r, Read) for r in reads])
        ),
        "validate": lambda plan_id, made: steps.step_validate(edges, plan_id, result_from_json(made, Reassembled)),
        "publish": lambda plan_id, made, checked: steps.step_publish(
            edges, plan_id, result_from_json(made, Reassembled), result_from_json(checked, Validated)
        ),
        "commit_offsets": lambda plan_id: steps.step_commit_offsets(edges, plan_id),
    }
    try:
        bodies[task](*inputs)
    except WavestitchError as error:
        return type(error).__name__
    return "done"


def send_some(lab: Lab, rng: random.Random) -> set[str]:
    """Up to four waveforms, and half a one that comes later."""
    whole = rng.randint(2, 4)
    lab.send(*(waveform(n) for n in range(whole)), waveform(9)[: _CHUNKS // 2])
    return {f"w{n}" for n in range(whole)}


def settle(lab: Lab, expected: set[str], *ends: str) -> Counts:
    """The half waveform's rest comes, a run takes it; everything is there once, and nothing is left to do."""
    lab.send(waveform(9)[_CHUNKS // 2 :])
    last = lab.run()
    assert last.state == "success", last
    assert "stands at the end" in str(lab.run().xcoms["plan.nothing"])
    rows = published_bytes(lab.deployment.tables(_STREAM))
    sent = {i: b"".join(bytes(c.value) for c in waveform(int(i[1:]))) for i in {*expected, "w9"}}
    ends_of_log = lab.deployment.log.ends(lab.deployment.stream(_STREAM).topic, [Partition(0), Partition(1)])
    assert lab.group() == lab.positions(), "the group does not stand where the head does"
    history = [b for b in lab.deployment.tables(_STREAM).batches() if b.partitions]
    assert all(b.identity_balances for b in history)
    assert len({b.plan_id for b in history}) == len(history), "a plan is in the history twice"
    return Counts(
        records=lab.sent,
        lost=len(sent.keys() - dict(rows).keys()),
        duplicated=len(rows) - len(dict(rows)),
        altered=sum(sent.get(i) != samples for i, samples in rows),
        unexplained_gaps=sum(abs(e.stable_end - lab.positions()[p]) for p, e in ends_of_log.items()),
        ends=ends,
    )


def attempt_beside_attempt(bench: Bench, seed: int) -> Counts:
    """Attempt 2 runs to its end, and the whole run too, before attempt 1 goes on from where it stopped."""
    rng = random.Random(seed)
    with laboratory(bench) as lab:
        expected = send_some(lab, rng)
        task = STEPS[seed // 4 % len(STEPS)]
        zombie = Zombie(lab, task, rng.randrange(60))
        try:
            run = lab.run(before={task: zombie.rise})
        finally:
            end = zombie.finish()
        assert run.state == "success", run
        assert end in ("done", "Fenced", "Transient", "BadInput"), f"attempt 1 ended with {end}"
        assert lab.published() == sorted(expected)
        return settle(lab, expected, run.state, f"attempt 1 of {task}: {end}")


def success_not_reported(bench: Bench, seed: int) -> Counts:
    """The task did it and could not say so; it is tried again and finds it done."""
    rng = random.Random(seed)
    with laboratory(bench) as lab:
        expected = send_some(lab, rng)
        task = STEPS[seed // 4 % len(STEPS)]
        told: list[int] = []

        def lose_it(context: Any, _result: Any = None) -> None:
            told.append(1)
            if len(told) == 1:
                raise Transient("its success was not reported")

        run = run_with(lab, after={task: lose_it})
        assert run.state == "success", run
        assert lab.published() == sorted(expected)
        return settle(lab, expected, f"{task}: tried {len(told)} times", run.state)


def run_with(lab: Lab, *, after: dict[str, Callable[..., None]]) -> Run:
    """A run in which something happens as a task ends."""
    dag = lab.dag()
    for task_id, act in after.items():
        dag.get_task(task_id)._post_execute_hook = act
    return run_here(dag)


def database_away(bench: Bench, seed: int) -> Counts:
    """Airflow's database does not answer while a task runs: soon back, or the run dies of it and another follows."""
    rng = random.Random(seed)
    with laboratory(bench) as lab:
        expected = send_some(lab, rng)
        outage = Outage(soon=seed // 4 % 2 == 0)
        try:
            end = lab.run(before={rng.choice(STEPS): outage.begin}).state
        except Exception as error:  # whatever Airflow makes of it
            end = type(error).__name__
        finally:
            outage.end()
        assert outage.began, "the database was never away"
        ends = [end]
        if end != "success":
            ends.append(lab.run().state)
        assert lab.published() == sorted(expected), ends
        return settle(lab, expected, *ends)


class Outage:
    """Holds Airflow's database so that nobody else can read or write it."""

    def __init__(self, *, soon: bool) -> None:
        self._soon = soon
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self.began = False

    def begin(self, _context: Any) -> None:
        if self.began:
            return
        self.began = True
        held = threading.Event()
        self._thread = threading.Thread(target=self._hold, args=(held,))
        self._thread.start()
        assert held.wait(30), "the database could not be taken"

    def end(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _hold(self, held: threading.Event) -> None:
        path = os.environ["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"].removeprefix("sqlite:///")
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("BEGIN EXCLUSIVE")
            held.set()
            self._over.wait(_RESTART_SECONDS if self._soon else None)
            database.execute("ROLLBACK")


_KINDS = (attempt_beside_attempt, attempt_beside_attempt, success_not_reported, database_away)


def airflow_in_trouble(bench: Bench, seed: int) -> Counts:
    return _KINDS[seed % len(_KINDS)](bench, seed)


CLASSES = (FaultClass("Airflow in trouble", (7, 22, 25), Need.BROKER, 10, (1,), airflow_in_trouble),)
