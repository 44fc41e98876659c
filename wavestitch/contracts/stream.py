"""A declared stream: `streams/NAME.yaml` as a type. Unknown keys and impossible values are refused with a sentence.

Pure: `parse_stream` takes text. The plan of a batch holds the whole definition, so that later steps never read YAML.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import pydantic
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from wavestitch.contracts.chunk_header import MAX_CHUNKS
from wavestitch.contracts.chunk_proof import ProofKind
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.expectation import MOST_EXPECTATIONS, expectation_problems, near_names
from wavestitch.contracts.harmless import harmless
from wavestitch.contracts.id_partitions import IdPartitions
from wavestitch.contracts.plain_yaml import read_plain_yaml
from wavestitch.contracts.quantities import Seconds
from wavestitch.contracts.sample_kinds import Encoding, SampleType

MIB = 1 << 20
MAX_WAVEFORM_CAP = 512 * MIB
MAX_BATCH_CAP = 1 << 50
_MOST_RECORDS = 1 << 40
_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")
_CRON = re.compile(r"[0-9A-Za-z*/,-]+( [0-9A-Za-z*/,-]+){4}")
_RANDOM = re.compile(r"(?i)(?<![a-z])[rh](?![a-z])")
_TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
_SIZE = re.compile(r"[0-9]{1,15}\s*(B|KiB|MiB|GiB|TiB)")
_SPAN = re.compile(r"([0-9]{1,18})\s*(s|m|h|d)")
_KEY_REFERENCE = re.compile(r"env:WAVESTITCH_PROOF_[A-Z0-9_]{1,100}|file:[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_NOT_OF_A_DAG = re.compile(r"[^A-Za-z0-9_.-]")
_SHOWN_CHARS = 80
_MOST_PROBLEMS = 8
_BYTES = TypeAdapter(pydantic.ByteSize)
_SPANS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _show(value: Any) -> str:
    """A short form of what a file says, for a sentence about it."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"


def _size(value: Any) -> Any:
    # pydantic reads more than that: decimal units, fractions, numbers that nobody gave a unit.
    if isinstance(value, str) and _SIZE.fullmatch(value):
        return int(_BYTES.validate_python(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"{_show(value)} is not a size; write a whole number with B, KiB, MiB, GiB or TiB, e.g. 256 MiB")


def _span(value: Any) -> Any:
    if isinstance(value, str) and (m := _SPAN.fullmatch(value)):
        return int(m[1]) * _SPANS[m[2]]
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"{_show(value)} is not a duration; write a whole number with s, m, h or d, e.g. 10 m")


ByteSize = Annotated[int, BeforeValidator(_size), Field(gt=0, le=MAX_BATCH_CAP)]
"""Bytes; in YAML `256 MiB`."""
Span = Annotated[Seconds, BeforeValidator(_span), Field(gt=0, le=100 * 365 * 86400)]
"""A length of time; in YAML `10 m`."""

GateDefault = Literal["stop", "park", "park_if_red"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Limits(_Strict):
    """What bounds a batch (I5). A waveform over its limit is held as `too_large`, decided from the index alone."""

    max_waveform_bytes: ByteSize = 256 * MIB
    max_batch_bytes: ByteSize = 4096 * MIB
    max_batch_records: int = Field(default=1_000_000, gt=0, le=_MOST_RECORDS)
    """Whoever publishes has some 300 bytes of memory for each, and up to 5 KiB where it is not published."""
    max_chunks: int = Field(default=65_536, gt=0, le=MAX_CHUNKS)
    max_held_rows: int = Field(default=1_000_000, gt=0, le=_MOST_RECORDS)
    max_held_bytes: ByteSize = 65536 * MIB
    """Chunks of waveforms that may be held; a batch that would hold more is refused by name. Whoever decides about them
    has some 2 KiB of memory for each: a batch takes all that waits up again, and may hold as many as it may read."""
    max_junk_bytes: ByteSize = 4096 * MIB
    """Records that are no chunks are held with their bytes up to this, beyond it without: they stop no stream."""
    max_clock_skew: Span = Seconds(7 * 86400)
    """How far a waveform's start time may lie from the record time of its chunks."""

    @field_validator("max_waveform_bytes")
    @classmethod
    def _within_cap(cls, value: int) -> int:
        if value > MAX_WAVEFORM_CAP:
            raise ValueError(f"{value} bytes; at most {MAX_WAVEFORM_CAP} (512 MiB) fit a row that readers can open")
        return value

    @model_validator(mode="after")
    def _batch_holds_a_waveform(self) -> Limits:
        if self.max_batch_bytes < self.max_waveform_bytes:
            raise ValueError(
                f"max_batch_bytes is {self.max_batch_bytes}, max_waveform_bytes {self.max_waveform_bytes}; "
                "a batch must have room for one waveform"
            )
        return self


class Expectation(_Strict):
    """One Great Expectations expectation over the batch's metrics rows, by its own name and arguments; of a list."""

    type: str
    severity: Literal["critical", "warning", "info"] = "critical"
    kwargs: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_of_the_list(self) -> Expectation:
        for key, sentence in expectation_problems(self.type, self.kwargs):
            raise PydanticCustomError("expectation", "{says}", {"key": key, "says": sentence, "type": self.type})
        return self


class Reading(_Strict):
    """How a batch is read: consumer runs side by side, slices no smaller than `min_slice` offsets, and a deadline."""

    workers: int = Field(default=2, ge=1, le=64)
    min_slice: int = Field(default=256, ge=1, le=_MOST_RECORDS)
    idle_deadline: Span = Seconds(60)
    """A reader that gets nothing for this long before its end fails; it never takes silence for the end."""


class Stream(_Strict):
    """One declared flow."""

    name: str
    topic: str
    group: str
    start: Literal["earliest", "latest"] = "earliest"
    """Where a stream without head and group offsets begins."""
    on_reset: Literal["adopt", "refuse"] = "adopt"
    """What the next plan does when somebody reset the group's offsets with Kafka's tools."""
    on_closed_gate: Literal["stop", "park"] = "stop"
    """What a batch does where a critical expectation about the whole of it fails: stop the stream until somebody has
    decided about it, or hold all of it and go on."""
    gate_timeout: Span = Seconds(12 * 3600)
    """How long Airflow waits for somebody to say what becomes of a batch at a closed gate."""
    gate_default: GateDefault = "stop"
    """What becomes of it where nobody says so: `stop` when the time is out; `park` by then, or before where headroom
    is red; `park_if_red` where headroom is red, else `stop` when the time is out."""
    late_after: Span = Seconds(4 * 3600)
    """An ingest that has not ended so long after it was queued is told of; it goes on."""
    rewind_approval: Literal["anyone", "other"] = "anyone"
    """Who may approve of a rewind that was previewed: anyone with the right to, or somebody else than who asked."""
    allowed_lateness: Span = Seconds(3600)
    """How long (in record time) an incomplete waveform waits for its missing chunks."""
    idle: Span = Seconds(600)
    """A partition without records for this long no longer holds the watermark back."""
    backfill_by: Literal["start", "record_time"] = "start"
    """Where a backfill looks for the waveforms that start in its interval: wherever they can be, or only where records
    of that time lie."""
    search_margin: Span = Seconds(3600)
    """Margin on both sides when a backfill looks for its interval by record time."""
    schedule: str | None = None
    """Cron, in UTC; the data interval of a scheduled run is the time between two ticks. None: only when triggered."""
    trigger: Literal["none", "lag"] = "none"
    """Without a schedule: whether the DAG `watch` starts an ingest where something is unread and none is under way."""
    freshness: Span | None = None
    """How long a waveform may take from the record time of its last chunk to the commit that publishes it, at the 99th
    percentile; what is later is told. None: nothing is declared, and nobody told."""
    backfill_intervals: str | None = None
    """Cron, in UTC: a backfill's intervals lie between two ticks. None: those of the schedule, or days."""
    description: str = ""
    samples: SampleType = "int"
    """The type of the table's column `samples`. A waveform that does not fit it exactly is held."""
    encoding: Encoding = "fast"
    """How samples are written: quickly, or in the least room."""
    proof: ProofKind = "none"
    """What every chunk must carry beside its CRC; what does not, or not the right one, is held."""
    proof_key: str | None = None
    """Where the key of `proof: mac` is; the key itself is in no stream file and no plan. A name in a namespace of its
    own: who may write a stream's file may have no other secret looked up."""
    id_partitions: IdPartitions | None = None
    """Which partitions an id may come from; a chunk from elsewhere is held, and touches no waveform."""
    trusted_producers: bool = False
    """Whoever may write to the topic means no harm; a plan then says nothing of compressed batches."""
    limits: Limits = Limits()
    reading: Reading = Reading()
    expectations: tuple[Expectation, ...] = Field(default=(), max_length=MOST_EXPECTATIONS)

    @field_validator("expectations", mode="before")
    @classmethod
    def _few_enough_to_look_at(cls, value: Any) -> Any:
        # pydantic counts after it has looked at each, and every DAG file reads every stream at each parse.
        if isinstance(value, list) and len(value) > MOST_EXPECTATIONS:
            raise ValueError(f"there are {len(value)}, at most {MOST_EXPECTATIONS} items are allowed")
        return value

    @field_validator("name")
    @classmethod
    def _plain_name(cls, value: str) -> str:
        if not _NAME.fullmatch(value):
            raise ValueError(f"{_show(value)}; a stream's name has a-z, 0-9 and _, begins with a letter, at most 48")
        return value

    @field_validator("topic", "group")
    @classmethod
    def _kafka_name(cls, value: str) -> str:
        if not _TOPIC.fullmatch(value):
            raise ValueError(f"{_show(value)}; allowed are letters, digits, '.', '_' and '-', at most 249")
        return value

    @field_validator("schedule", "backfill_intervals")
    @classmethod
    def _five_fields(cls, value: str | None) -> str | None:
        if value is not None and len(value.split()) != 5:
            raise ValueError(f"{_show(value)} is not a cron expression of five fields, e.g. '0 * * * *'")
        # A random field would be another schedule each time the file is read.
        if value is not None and (not _CRON.fullmatch(value) or _RANDOM.search(value)):
            raise ValueError(f"{_show(value)}; a schedule has numbers, names of months and days, and * / , - only")
        return value

    @field_validator("proof_key")
    @classmethod
    def _names_a_key_and_no_other_secret(cls, value: str | None) -> str | None:
        if value is not None and not _KEY_REFERENCE.fullmatch(value):
            raise ValueError(
                f"{_show(value)}; write env:WAVESTITCH_PROOF_NAME (A-Z, 0-9 and _), or file:NAME of a file in "
                "the settings' key_folder"
            )
        return value

    @model_validator(mode="after")
    def _started_in_one_way(self) -> Stream:
        if self.trigger == "lag" and self.schedule is not None:
            raise ValueError("trigger: lag is for a stream without a schedule; leave one of the two out")
        return self

    @model_validator(mode="after")
    def _a_key_where_one_is_used(self) -> Stream:
        if (self.proof == "mac") != (self.proof_key is not None):
            raise ValueError(
                "proof_key belongs to proof: mac, and that needs one: write env:WAVESTITCH_PROOF_NAME or file:NAME"
            )
        return self

    def remarks(self) -> list[str]:
        """Sentences for whoever checks it or plans with it, which stop nothing."""
        if self.backfill_by == "start" or self.search_margin >= self.limits.max_clock_skew:
            return []
        return [
            f"backfills look for records within search_margin ({self.search_margin} s) of their interval; a waveform "
            f"may start up to limits.max_clock_skew ({self.limits.max_clock_skew} s) from its record time: those "
            "farther away are not found. Say `backfill_by: start`, or a search_margin as large"
        ]

    def digest(self) -> str:
        """Digest of the whole definition, independent of the YAML's layout."""
        return hashlib.sha256(json.dumps(self.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()


def spoken_definition(stream: Stream) -> dict[str, Any]:
    """As JSON, what it says that is no default."""
    return stream.model_dump(mode="json", exclude_defaults=True)


def shared_groups(streams: Iterable[Stream]) -> list[str]:
    """A sentence for each consumer group that several streams name: each would find the other's offsets in it."""
    by_group: dict[str, list[str]] = {}
    for stream in streams:
        by_group.setdefault(stream.group, []).append(stream.name)
    return [
        f"streams {', '.join(names)} all name the consumer group {group}; give each one of its own"
        for group, names in sorted(by_group.items())
        if len(names) > 1
    ]


def backfill_dag_id(name: str) -> str:
    """The DAG that reads past intervals of a declared stream."""
    return f"backfill_{name}"


def rewind_dag_id(name: str) -> str:
    """The DAG that moves the positions of a declared stream."""
    return f"rewind_{name}"


def decide_dag_id(name: str) -> str:
    """The DAG that decides about what a declared stream holds."""
    return f"decide_{name}"


def promote_dag_id(name: str) -> str:
    """The DAG that replaces what a declared stream has published of a range."""
    return f"promote_{name}"


def verify_dag_id(name: str) -> str:
    """The DAG that compares a declared stream's table with its log."""
    return f"verify_{name}"


def ingest_dag_id(name: str) -> str:
    """The DAG that ingests the stream of a file `NAME.yaml`, also where that is no stream's name."""
    return f"ingest_{name_in_airflow(name)}"


def asset_name(name: str) -> str:
    """The Airflow asset that stands for a declared stream's published waveforms."""
    return f"waveforms_{name}"


def name_in_airflow(name: str) -> str:
    """A stream's name as it is; of a file `NAME.yaml` that cannot declare one, what no stream and no other such file
    has, of at most 80 characters: no name of a stream has a hyphen."""
    if is_stream_name(name):
        return name
    digest = hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()
    return f"{_NOT_OF_A_DAG.sub('_', name)[:47]}-{digest[:32]}"


def is_stream_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def parse_stream(text: str, *, name: str, where: str = "") -> Stream:
    """The stream that `streams/{name}.yaml` declares, or the file that `where` names; raises `BadInput` with one
    sentence a problem."""
    where = where or f"streams/{name}.yaml"
    found = read_plain_yaml(text, where=where)
    if not isinstance(found, dict):
        raise BadInput(
            f"{where} holds a {type(found).__name__}; it must hold a mapping with at least topic and group",
            for_guests=True,
        )
    if found.get("name", name) != name:
        raise BadInput(f"{where} names the stream {_show(found['name'])}; file and name must agree, rename one of them")
    try:
        return Stream.model_validate({**found, "name": name})
    except ValidationError as error:
        problems = [_sentence(where, e) for e in error.errors()[:_MOST_PROBLEMS]]
        if error.error_count() > len(problems):
            problems.append(f"and {error.error_count() - len(problems)} more")
        raise BadInput("; ".join(problems), for_guests=True, file=where) from None


def _sentence(where: str, problem: Any) -> str:
    inside = [problem["ctx"]["key"]] if problem["type"] == "expectation" else []
    path = harmless(".".join(str(p) for p in [*problem["loc"], *inside]))
    path = path if len(path) <= _SHOWN_CHARS else path[:_SHOWN_CHARS] + "…"
    if problem["type"] == "extra_forbidden":
        return f"{where}: unknown key {path!r}; remove it, or look up its name in docs/streams.md"
    if problem["type"] == "missing":
        return f"{where}: {path!r} is missing; a stream needs it"
    message = str(problem["msg"]).removeprefix("Value error, ")
    if inside == ["type"] and (near := near_names(problem["ctx"]["type"])):
        message += f"; did you mean {' or '.join(near)}?"
    return f"{where}: {path!r} is not valid: {message}"
