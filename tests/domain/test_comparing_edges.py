"""The place of a verification is locked by the process that works there, and gone when it ends."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.deployment_rig import STREAM
from tests.hostile.landed_deployment import make_landed_deployment
from wavestitch.batch.comparing_edges import VerifyingEdges
from wavestitch.batch.work_folder import LOCK, VERIFYING
from wavestitch.write_once import is_held


def test_the_place_is_held_while_somebody_works_there_and_gone_afterwards(tmp_path: Path) -> None:
    deployment = make_landed_deployment(tmp_path, stream_yaml="", partitions=1).deployment
    edges = VerifyingEdges(deployment, STREAM)
    with edges.place():
        (place,) = (tmp_path / "landing" / STREAM).glob(f"{VERIFYING}*")
        assert is_held(place / LOCK)
    assert not place.exists()


def test_it_goes_too_where_what_was_asked_there_fails_or_has_taken_it_along(tmp_path: Path) -> None:
    deployment = make_landed_deployment(tmp_path, stream_yaml="", partitions=1).deployment
    edges = VerifyingEdges(deployment, STREAM)
    with pytest.raises(ZeroDivisionError), edges.place():
        raise ZeroDivisionError
    with edges.place():
        shutil.rmtree(tmp_path / "landing" / STREAM)
    assert list((tmp_path / "landing").rglob(f"{VERIFYING}*")) == []
