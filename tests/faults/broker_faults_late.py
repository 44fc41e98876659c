"""What reaches a broker, or comes back, after whoever asked has given up (row 31 of the matrix).

The group's offsets are a projection: an old commit of them that arrives late says an old head, and the next plan writes
the newest one again. A reset that it lands on has to be made again: nobody can fence that.
"""

from __future__ import annotations

from collections.abc import Callable

from consumers.log_view import KafkaLog
from tests.clean_processes import clean_processes
from tests.deployment_rig import eventually
from tests.faults.broker_faults_case import BETWEEN, Case
from tests.faults.broker_faults_network import Proxies, played
from tests.faults.broker_faults_nodes import strike
from tests.faults.broker_faults_runs import reset_group
from tests.faults.fault_class import Bench, Counts, FaultClass, Need
from tests.faults.local_faults_batch import carry
from tests.faults.tcp_proxy import CLEAR
from wavestitch.batch.rewind import Target
from wavestitch.contracts.errors import Transient

MOMENTS = (*BETWEEN, "after a later batch", "after a rewind", "after a reset", "after all", "never")
_OFFSET_COMMIT = 8
_SECONDS = 60
_DEADLINE = 2.0
"""Seconds that a client waits for the answer to its commit."""


def is_offset_commit(_: bytes, block: bytes) -> bool:
    """Whether one of the requests in the block is one."""
    at = 0
    while at + 6 <= len(block):
        if int.from_bytes(block[at + 4 : at + 6]) == _OFFSET_COMMIT:
            return True
        at += 4 + int.from_bytes(block[at : at + 4])
    return False


def offset_commit_late(bench: Bench, seed: int) -> Counts:
    """It arrives, once or twice, while the next run is at work, after a later batch, a rewind or a reset, or never."""

    def act(case: Case, proxies: Proxies) -> None:
        case.produce()
        # Afterwards a plan commits no offsets.
        assert case.run_until_done().word == "done"
        case.produce()
        plan_id = (_killed if case.rng.random() < 0.5 else _gives_up)(case, proxies)
        late = [kept for proxy in proxies.values() for kept in proxy.kept]
        assert late, "no offsets were committed"
        moment, times = MOMENTS[seed % len(MOMENTS)], case.rng.choice((1, 1, 2))

        def land() -> None:
            for each in late:
                each.land(times)

        _go_on(case, plan_id, moment, land)
        if moment == "never":
            for each in late:
                each.lose()

    return played(bench, seed, act)


def _go_on(case: Case, plan_id: str | None, moment: str, land: Callable[[], None]) -> None:
    """What happens until the commit lands, and its landing."""
    if moment in BETWEEN:
        if case.rng.random() < 0.5:  # as a retry does it; in no step of a plan that is finished but the last
            assert case.run(plan_id=plan_id, between={moment: land}).word == "done"
        case.produce(prefix="next")
        assert case.run(between={moment: land}).word == "done"
    if moment in ("after a later batch", "after a reset"):
        case.produce(prefix="later")
        assert case.run_until_done().word == "done"
    if moment == "after a rewind":
        case.rewind(Target("earliest"))
    if moment == "after a reset":
        reset_group(case)
    if moment == "after all":
        case.settle()
    if moment.startswith("after"):
        land()


def _gives_up(case: Case, proxies: Proxies) -> str:
    """The plan of a run whose last request is not answered."""
    deployment = case.whole.deployment
    before, vars(deployment)["log"] = deployment.log, KafkaLog(deployment.kafka, deadline=_DEADLINE)
    try:
        ended = case.run(between={"publish": lambda: _keep(proxies)})
    finally:
        vars(deployment)["log"] = before
        _pass_on(proxies)
    assert isinstance(ended.error, Transient), ended
    return ended.plan_id


def _killed(case: Case, proxies: Proxies) -> str:
    """The plan of a process that is killed once its last request is on its way."""
    known = {p.name for p in case.plans_folder()}
    _keep(proxies)
    child = clean_processes().Process(target=carry, args=(case.whole.folder,))
    child.start()
    eventually(lambda: any(p.kept for p in proxies.values()) or not child.is_alive(), seconds=_SECONDS)
    assert child.is_alive(), "it ended before it was to be killed"
    child.kill()
    child.join(_SECONDS)
    eventually(lambda: all(kept.sender_gone for p in proxies.values() for kept in p.kept))
    _pass_on(proxies)
    case.ends.append("killed")
    return str(next(p.name for p in case.plans_folder() if p.name not in known))


def _keep(proxies: Proxies) -> None:
    for proxy in proxies.values():
        proxy.keep(is_offset_commit, most=9)


def _pass_on(proxies: Proxies) -> None:
    for proxy in proxies.values():
        proxy.pass_on()


def answers_late(bench: Bench, seed: int) -> Counts:
    """The connections that a run has stand still from a record or a step on; what waits on them comes in the next."""

    def act(case: Case, proxies: Proxies) -> None:
        sent = len(case.produce())

        def freeze() -> None:
            for proxy in proxies.values():
                proxy.freeze()

        def thaw() -> None:
            for proxy in proxies.values():
                proxy.thaw()

        ended = strike(case, sent, freeze)
        assert ended.word in ("done", "Transient"), ended
        if seed % 3:
            case.produce(prefix="next")
        plan_id = ended.plan_id if ended.error is not None and case.rng.random() < 0.5 else None
        found = case.run(plan_id=plan_id, between={case.moment(): thaw})
        assert found.word in ("done", "nothing", "Transient"), found
        thaw()
        for proxy in proxies.values():
            proxy.set(CLEAR)

    return played(bench, seed, act)


CLASSES = (
    FaultClass("offset commit comes late", (31,), Need.CLUSTER, 33, (7,), offset_commit_late),
    FaultClass("answers come late", (31,), Need.CLUSTER, 9, (), answers_late),
)
