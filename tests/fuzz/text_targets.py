"""What people write: streams, settings, requests, reasons. Taken as it was meant, or refused with a sentence."""

from __future__ import annotations

import html
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from tests.fuzz.draw import Draw, packed
from tests.fuzz.target import Target, check_sentence
from tests.hostile.yaml_kinds import yaml_kinds
from wavestitch.batch.request import (
    check_gate,
    earlier_plan,
    parse_partitions,
    parse_range,
    parse_until,
    plan_request,
    rewind_target,
)
from wavestitch.contracts.errors import BadInput, WavestitchError, error_from_json
from wavestitch.contracts.expectation import SHAPES
from wavestitch.contracts.harmless import (
    for_html,
    for_markdown,
    harmless,
    harmless_lines,
    is_plain,
)
from wavestitch.contracts.instant import parse_time
from wavestitch.contracts.plain_text import MAX_SAID, name_of_person, said_by_person
from wavestitch.contracts.stream import MAX_BATCH_CAP, MAX_WAVEFORM_CAP, Stream, parse_stream
from wavestitch.settings import load_settings

_STREAM = """\
topic: ecg.raw
group: wavestitch-ecg
start: latest
on_reset: refuse
on_closed_gate: park
allowed_lateness: 10 m
schedule: '0 * * * *'
proof: mac
proof_key: env:WAVESTITCH_PROOF_KEY
id_partitions: {prefixes: {"ward-a/": [0, 1]}}
limits: {max_waveform_bytes: 64 MiB, max_batch_bytes: 1 GiB, max_chunks: 100}
reading: {workers: 4, min_slice: 100, idle_deadline: 30 s}
expectations:
  - type: expect_column_values_to_be_between
    severity: warning
    kwargs: {column: sample_max, max_value: 5, mostly: 0.9,
      row_condition: {type: comparison, column: {name: units}, operator: IN, parameter: [mV, uV]}}
  - {type: expect_column_values_to_match_regex, kwargs: {column: source, regex: '^[a-z]+$'}}
  - {type: expect_column_max_to_be_between, kwargs: {column: start_time, max_value: 2030-01-01T00:00:00Z}}
"""
_SETTINGS = """\
landing = "/tmp/landing"
docs = "/tmp/docs"
cache = "/tmp/cache"
[kafka]
bootstrap = "localhost:9092"
options = { "security.protocol" = "SASL_SSL", "sasl.mechanism" = "PLAIN", "sasl.password" = "env:PW" }
[tables]
uri = "postgresql+psycopg2://me@db/iceberg?sslmode=verify-full"
warehouse = "file:///tmp/warehouse"
properties = { "s3.region" = "eu" }
[spark]
conf = { "spark.driver.extraJavaOptions" = "-Dx=y" }
environment = ["AWS_PROFILE"]
[maintain]
junk = "30 d"
[maintain.streams.ecg]
most_snapshots = 5
"""


def stream_yaml(data: bytes) -> None:
    try:
        stream = parse_stream(data.decode(errors="surrogateescape"), name="x")
    except BadInput as error:
        check_sentence(error.message)
        return
    assert 0 < stream.limits.max_waveform_bytes <= min(MAX_WAVEFORM_CAP, stream.limits.max_batch_bytes)
    assert stream.limits.max_batch_bytes <= MAX_BATCH_CAP
    assert {e.type for e in stream.expectations} <= SHAPES.keys()
    written = stream.model_dump(mode="json")
    again = Stream.model_validate(json.loads(json.dumps(written)))
    assert again.digest() == stream.digest()
    assert again.model_dump(mode="json") == written


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="wavestitch-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))


def settings_toml(data: bytes) -> None:
    draw = Draw(data)
    environment = {f"WAVESTITCH_{draw.text()}": draw.text() for _ in range(draw.byte() % 3)}
    path = _folder() / "wavestitch.toml"
    path.write_bytes(draw.rest())
    try:
        settings = load_settings({**environment, "WAVESTITCH_CONFIG": str(path)})
    except BadInput as error:
        check_sentence(error.message)
        return
    assert json.dumps(settings.redacted())
    assert repr(settings) == str(settings)
    assert type(settings).model_validate(settings.model_dump()) == settings


def requests(data: bytes) -> None:
    draw = Draw(data)
    ask, text = draw.pick(_ASKS), draw.rest().decode(errors="surrogateescape")
    try:
        ask(text)
    except BadInput as error:
        check_sentence(error.message)


def _range(text: str) -> None:
    found = parse_range(text)
    assert parse_range(f"{found.partition}:{found.start}-{found.end}") == found
    assert 0 <= found.start < found.end < 10**18


def _until(text: str) -> None:
    found = parse_until(text)
    assert parse_until(",".join(f"{p}:{o}" for p, o in found.items())) == found


def _partitions(text: str) -> None:
    found = parse_partitions(text)
    assert parse_partitions(None if found is None else ",".join(map(str, found))) == found


def _time(text: str) -> None:
    found = parse_time(text)
    assert found % 1000 == 0 or re.search(r"[.,]\d{7}", text)
    assert abs(found) < 1 << 69


def _target(text: str) -> None:
    to, _, partitions = text.partition("\n")
    found = rewind_target(to, partitions)
    check_sentence(str(found))
    assert all(0 <= p < 10**9 for p in {**(found.offsets or {}), **found.parts})


def _run(text: str) -> None:
    kind, *given = text.split("\n")
    params = dict(zip(("offsets", "interval", "partitions", "until", "plan_id"), given, strict=False))
    found = plan_request(kind, (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)), params)
    assert (found.scope is None) or found.scope.start_ns < found.scope.end_ns
    # Who names offsets or an interval, leaves the positions alone.
    assert found.kind.value != "ingest" or not (params.get("offsets", "").strip() or params.get("interval", "").strip())
    earlier_plan(kind, params)


def _gate(text: str) -> None:
    gate, _, why = text.partition("\n")
    found, reason = check_gate(gate, why)
    assert found == "stop" or (is_plain(reason) and 0 < len(reason) <= MAX_SAID)


_ASKS: tuple[Callable[[str], None], ...] = (_range, _until, _partitions, _time, _target, _run, _gate)


def shown_text(data: bytes) -> None:
    """Foreign text, as it is shown in each medium."""
    text = data.decode(errors="surrogateescape")
    shown = harmless(text, most=200)
    assert is_plain(shown)
    assert len(shown) <= 201
    assert all(is_plain(line) for line in harmless_lines(text, most=200).split("\n"))
    assert html.unescape(for_html(text)) == harmless(text)
    assert not set(for_html(text)) & set("<>\"'")
    assert "`" not in for_markdown(text)[1:-1]
    check_sentence(name_of_person(text))
    try:
        said = said_by_person(text, "the reason")
    except BadInput as error:
        check_sentence(error.message)
    else:
        assert is_plain(said)
        assert len(said) <= MAX_SAID
        assert said == text.strip()
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return
    if isinstance(found, dict):
        heard = error_from_json(found)
        assert isinstance(heard, WavestitchError)
        assert error_from_json(heard.to_json()).to_json() == heard.to_json()


def _stream_seeds() -> Iterator[bytes]:
    yield _STREAM.encode()
    yield b"topic: t\ngroup: g\n"
    yield from (k.text.encode(errors="surrogateescape") for k in yaml_kinds() if len(k.text) < 2000)


def _settings_seeds() -> Iterator[bytes]:
    yield packed(0) + _SETTINGS.encode()
    yield packed(2, "KAFKA__OPTIONS", '{"ssl.ca.location": "/a"}', "SPARK__ENVIRONMENT", '["A"]') + _SETTINGS.encode()
    yield packed(2, "LANDING", "/a", "KAFKA__BOOTSTRAP", "b:1") + _SETTINGS.encode()
    yield packed(0) + b"a = " + b"[" * 2000
    yield packed(0) + b"\xff"


def _request_seeds() -> Iterator[bytes]:
    for n, texts in enumerate(
        (
            ("0:1-2", "1:100-200 "),
            ("0:5,1:6",),
            ("0,2", "0 ,2"),
            ("2026-01-31T12:00:00Z", "9999-12-31T23:59:59.999999-23:59"),
            ("earliest\n0,2", "2:earliest,3:12345", "2:2026-01-31T12:00:00Z,3:1", "0:1,1:2", "rebuilt"),
            (
                "manual\n0:1-2",
                "manual\n\n2026-01-01T00:00:00Z/2026-01-02T00:00:00Z",
                "scheduled\n\n\n0\n0:5",
                "backfill",
            ),
            ("accept\nbecause", "stop", "park\n"),
        )
    ):
        yield from (packed(n) + text.encode() for text in texts)


def _shown_seeds() -> Iterator[bytes]:
    yield b"=1+1"
    yield '\u202eabc\u2800`<a href="\'">\ud800'.encode(errors="surrogatepass")
    yield b'{"error": "Fenced", "message": "a", "facts": {"n": 1}}'
    yield b'{"error": "Fenced", "message": "a", "facts": {"message": 1}}'
    yield b'{"error": [], "facts": 5}'


_WORDS = (*Stream.model_fields, *SHAPES, "MiB", "GiB", "!!int", "!!python/object", "<<", "&a", "*a", "? ", "- ", "|")

TARGETS = (
    Target("stream_yaml", stream_yaml, _stream_seeds, _WORDS),
    Target(
        "settings_toml",
        settings_toml,
        _settings_seeds,
        ("kafka", "options", "properties", "maintain", "streams", "[[", "'''", "1979-05-27", "inf", "env:", "file:"),
    ),
    Target(
        "requests",
        requests,
        _request_seeds,
        ("earliest", "group", "head", "previous", "new-topic", "2026-01-01T00:00:00Z", "+14:00", "\n", "٣", ":", ","),
        longest=1000,
    ),
    Target("shown_text", shown_text, _shown_seeds, ("\u202e", "\x1b[", "\u2028", "error", "facts", "message"), 1000),
)
