"""Who comes in by a token in a file may do what its user may, for as long as somebody writes that file anew."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.builders.recordings import cut, recordings
from tests.builders.tokens import renew, token
from tests.deployment_rig import STREAM, eventually, plan_on
from tests.security.secure_broker import SecureBroker
from tests.security.secure_deployment import JOBS, SecureDeployment, make_secure_site
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.results import Planned, Read
from wavestitch.batch.steps import step_plan, step_read
from wavestitch.contracts.errors import BadInput, Terminal
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.kafka.clients import open_consumer
from wavestitch.kafka.raw_log import RawLog
from wavestitch.producers.sender import send_chunks


@pytest.fixture(scope="module")
def secure(secure_broker: SecureBroker, java_home: Path, tmp_path_factory: pytest.TempPathFactory) -> SecureDeployment:
    return make_secure_site(tmp_path_factory.mktemp("token") / "s", secure_broker, java_home=java_home)


@pytest.fixture(scope="module")
def plan_id(secure: SecureDeployment) -> str:
    owner = secure.enter("owner")
    send_chunks(cut(recordings(1, seed=2, prefix="planned")), topic=secure.whole.topic, settings=owner.kafka)
    return plan_on(DeploymentEdges(owner, STREAM)).plan_id


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    renew(path, token("owner"))
    return path


def test_chunks_are_sent_planned_and_read_by_other_processes_with_a_token(secure: SecureDeployment, file: Path) -> None:
    owner = secure.enter_by_token(file)
    send_chunks(cut(recordings(3)), topic=secure.whole.topic, settings=owner.kafka)
    planned = step_plan(DeploymentEdges(owner, STREAM), PlanRequest())
    assert isinstance(planned, Planned)
    read = [step_read(DeploymentEdges(owner, STREAM), planned.plan_id, [unit]) for unit in planned.units]
    ends = owner.log.ends(secure.whole.topic, [Partition(0), Partition(1)])
    assert sum(one.records for one in read if isinstance(one, Read)) == sum(end.stable_end for end in ends.values())


@pytest.mark.parametrize("job", ["producer", "planner", "reader"])
def test_a_token_that_the_broker_does_not_take_is_terminal_at_once(
    secure: SecureDeployment, plan_id: str, file: Path, job: str
) -> None:
    """By each kind of client; that all parts are told a login's end at once is in `test_login.py`."""
    renew(file, token("owner", iat=time.time() + 3600))
    began, before = time.monotonic(), secure.stands()
    with pytest.raises(Terminal, match=r"uthentication|does not let us in") as refused:
        JOBS[job](secure.enter_by_token(file), plan_id)
    assert time.monotonic() - began < 5
    assert file.read_text() not in refused.value.message
    assert secure.stands() == before


def test_a_token_of_somebody_who_may_nothing_is_let_in_and_may_nothing(secure: SecureDeployment, file: Path) -> None:
    renew(file, token("nobody"))
    with pytest.raises(Terminal, match="uthorization failed"):
        step_plan(DeploymentEdges(secure.enter_by_token(file), STREAM), PlanRequest())


def test_a_client_outlives_its_first_token_by_the_one_that_was_written_since(
    secure: SecureDeployment, file: Path
) -> None:
    """The broker ends a connection with the token that it was opened with."""
    renew(file, token("owner", lives=4))
    ends = time.time() + 4
    kafka = secure.enter_by_token(file).kafka
    consumer = open_consumer(kafka, group=secure.whole.group, isolation="read_committed")
    with RawLog(kafka, secure.whole.topic, deadline=20) as raw:
        raw.fetch(Partition(0), Offset(0), most_bytes=1 << 16)
        assert secure.whole.topic in consumer.list_topics(secure.whole.topic, timeout=10).topics
        renew(file, token("owner"))
        eventually(lambda: time.time() > ends + 1, seconds=10)
        assert raw.fetch(Partition(0), Offset(0), most_bytes=1 << 16)
        found = consumer.list_topics(secure.whole.topic, timeout=10).topics[secure.whole.topic]
    assert found.error is None
    consumer.close()


def test_a_token_that_nobody_renews_ends_who_uses_it_and_says_which_file(
    secure: SecureDeployment, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    renew(file, token("owner", lives=3))
    kafka, heard = secure.enter_by_token(file).kafka, list[str]()
    said = f"the token of [kafka] is in {file}: No such file"
    consumer = open_consumer(
        kafka, group=secure.whole.group, isolation="read_committed", on_error=lambda e: heard.append(e.name())
    )
    file.unlink()
    # The broker ends who comes with an old token, perhaps before the client has asked for the next one.
    eventually(lambda: consumer.poll(0.05) is None and "_AUTHENTICATION" in heard and said in caplog.text, seconds=15)
    consumer.close()
    with pytest.raises(BadInput, match=r"is in .*/token: No such file"):
        open_consumer(kafka, group="g", isolation="read_committed")
