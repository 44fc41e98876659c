"""A stream does not begin in the consumer group of another one: neither finds the other's offsets there (I4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.domain.maintenance_rig import Rig
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.contracts.errors import Refused

THEIRS = "topic: t\ngroup: g\n"


def declare(rig: Rig, name: str, text: str) -> None:
    (rig.folder / "streams" / f"{name}.yaml").write_text(text)


def test_a_new_stream_that_names_another_one_s_group_is_refused_and_the_other_goes_on(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.publish("w1")
    declare(rig, "evil", THEIRS)
    with pytest.raises(Refused, match="stream evil has not begun, and streams evil, ecg all name the consumer group g"):
        DeploymentEdges(rig.deployment, "evil").stream  # noqa: B018 - asked for by every plan and rewind
    assert DeploymentEdges(rig.deployment, "ecg").stream.group == "g"


def test_before_either_has_begun_neither_does_until_each_has_a_group_of_its_own(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    declare(rig, "evil", THEIRS)
    for name in ("ecg", "evil"):
        with pytest.raises(Refused, match="give each one of its own"):
            DeploymentEdges(rig.deployment, name).stream  # noqa: B018
    declare(rig, "evil", "topic: t\ngroup: another\n")
    assert DeploymentEdges(rig.deployment, "evil").stream.group == "another"
    assert DeploymentEdges(rig.deployment, "ecg").stream.group == "g"


def test_a_file_that_declares_nothing_is_in_nobody_s_way(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    declare(rig, "broken", "group: [g\n")
    assert DeploymentEdges(rig.deployment, "ecg").stream.group == "g"
