"""Hostile stream definitions: one sentence, in bounded time; what is taken can be pinned in a plan and read again."""

from __future__ import annotations

import time

import pytest

from tests.hostile.yaml_kinds import YamlKind, yaml_kinds
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.stream import Stream, parse_stream

CPU_SECONDS = 5.0


@pytest.mark.parametrize("kind", [k for k in yaml_kinds() if k.says is not None], ids=lambda k: k.name)
def test_a_hostile_definition_is_refused_with_one_sentence(kind: YamlKind) -> None:
    began = time.process_time()
    with pytest.raises(BadInput) as refused:
        parse_stream(kind.text, name=kind.stream)
    assert kind.says is not None
    assert kind.says in refused.value.message
    assert len(refused.value.message) < 1200
    assert time.process_time() - began < CPU_SECONDS


@pytest.mark.parametrize("kind", [k for k in yaml_kinds() if k.says is None], ids=lambda k: k.name)
def test_an_odd_definition_that_is_taken_is_the_same_in_every_plan(kind: YamlKind) -> None:
    found = parse_stream(kind.text, name=kind.stream)
    again = Stream.model_validate(found.model_dump(mode="json"))
    assert again.digest() == found.digest()
