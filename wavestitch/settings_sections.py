"""The sections of `wavestitch.toml`, each validated by itself: where Kafka, the tables and Spark are, who is told, how
long things stay. Decides nothing that takes two of them; `wavestitch.settings` reads the file and puts them together.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from wavestitch.contracts.headroom import Thresholds
from wavestitch.contracts.payload_apart import PayloadPlace
from wavestitch.contracts.quantities import Seconds
from wavestitch.contracts.redaction import secret_inside
from wavestitch.contracts.spark_address import read_spark_address
from wavestitch.contracts.stream import MIB, ByteSize, Span
from wavestitch.contracts.warehouse import plain_store, plain_warehouse
from wavestitch.contracts.web_address import webhook_problem
from wavestitch.secret_reference import is_reference

ANY_POOL = "default_pool"
"""The pool that every Airflow has."""


_STORE_KEYS = {
    *("s3.endpoint", "s3.region", "s3.force-virtual-addressing"),
    *("s3.access-key-id", "s3.secret-access-key", "s3.session-token"),
}


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Kafka(Section):
    """The broker. `options`: further librdkafka settings, from an allow-list (`wavestitch.kafka.client_settings`).
    `token`: the file with the token of OAUTHBEARER, which is read anew before the token ends."""

    bootstrap: str
    token: str | None = None
    pool: str = Field(default=ANY_POOL, min_length=1)
    """Airflow's, of the tasks that read a batch's records: so many readers at once, of all streams."""
    pool_slots: int = Field(default=8, ge=1)
    """Of a pool that is not there yet, which Airflow's start makes; afterwards Airflow's own page changes it."""
    options: dict[str, str] = Field(default_factory=dict)

    @field_validator("token")
    @classmethod
    def _in_a_file(cls, token: str | None) -> str | None:
        found = _referred(token)
        if found is not None and not Path(found.removeprefix("file:")).is_absolute():
            raise ValueError(
                "it is read anew before it ends, wherever a reader runs; write file:PATH, the path absolute"
            )
        return found


class Tables(Section):
    """The Iceberg catalog. `properties`: further pyiceberg catalog properties."""

    catalog: str = "wavestitch"
    uri: str
    warehouse: str
    connect_timeout: Span = Seconds(10)
    answer_timeout: Span = Seconds(60)
    """For each wait on a connection that stands."""
    properties: dict[str, str] = Field(default_factory=dict)

    @field_validator("warehouse")
    @classmethod
    def _spelled_plainly(cls, warehouse: str) -> str:
        if secret_inside("warehouse", warehouse):
            return warehouse  # refused where all secrets are looked for, and with what to do
        return plain_warehouse(warehouse)


class Payload(Section):
    """Where the payload of what batches read lies, if not in the landing: a place in an object store, with a login of
    its own. `properties`: of the store, in pyiceberg's words."""

    place: str | None = None
    connect_timeout: Span = Seconds(10)
    answer_timeout: Span = Seconds(60)
    """For each wait on a connection that stands."""
    attempts: int = Field(default=5, ge=1, le=20)
    """At each request that the store refuses for now, or does not answer."""
    properties: dict[str, str] = Field(default_factory=dict)

    @property
    def at(self) -> PayloadPlace | None:
        """With the login as it is written: by reference."""
        if self.place is None:
            return None
        return PayloadPlace(
            self.place, dict(self.properties), float(self.connect_timeout), float(self.answer_timeout), self.attempts
        )

    @field_validator("place")
    @classmethod
    def _in_a_store(cls, place: str | None) -> str | None:
        if place is None or secret_inside("place", place):
            return place  # refused where all secrets are looked for, and with what to do
        return plain_store(place, "payload")

    @model_validator(mode="after")
    def _properties_are_the_place_s(self) -> Payload:
        if self.place is None and self.properties:
            raise ValueError(
                "properties are those of a place, and none is named; name it, as in s3://waveforms/payload"
            )
        unknown = sorted(self.properties.keys() - _STORE_KEYS)
        if unknown:
            raise ValueError(f"properties has {unknown[0]!r}; there are {', '.join(sorted(_STORE_KEYS))}")
        if self.place is not None and not self.properties.get("s3.region"):
            raise ValueError(
                f'place {self.place} is in an object store, and properties does not say its "s3.region"; write it, '
                'e.g. "us-east-1" where the store has none'
            )
        if ("s3.access-key-id" in self.properties) != ("s3.secret-access-key" in self.properties):
            raise ValueError('properties has one of "s3.access-key-id" and "s3.secret-access-key"; they go together')
        return self


class Spark(Section):
    """Where Spark runs and how; `conf` is handed to spark-submit. `connection`: Airflow's, where it submits; empty:
    none, `master` is meant there, too.

    `remote`: a Spark that is there already, which then does all stitching; none of the others is for it, but `pool`.
    """

    master: str = "local[2]"
    remote: str | None = None
    token: str | None = None
    """Of `remote`, by reference alone."""
    conf: dict[str, str] = Field(default_factory=dict)
    java_home: Path | None = None
    connection: str = "spark_default"
    pool: str = Field(default="spark", min_length=1)
    """Airflow's, of the tasks that start a Spark, of all streams and kinds of runs: as many at once as it has slots."""
    pool_slots: int = Field(default=1, ge=1)
    """Of a pool that is not there yet, which Airflow's start makes; afterwards Airflow's own page changes it."""
    environment: tuple[str, ...] = ()
    """Names of variables that Spark gets besides what every program needs, e.g. those of an object store's login."""

    @field_validator("remote")
    @classmethod
    def _may_be_told_the_token(cls, remote: str | None) -> str | None:
        if remote is None:
            return None
        try:
            return str(read_spark_address(remote))
        except ValueError as problem:
            raise ValueError(f"it {problem}") from None

    @field_validator("token")
    @classmethod
    def _by_reference(cls, token: str | None) -> str | None:
        return _referred(token)

    @model_validator(mode="after")
    def _remote_is_let_in_by_token(self) -> Spark:
        if (self.remote is None) != (self.token is None):
            raise ValueError(
                "remote and token go together: a Spark without a token runs the code of whoever reaches its port"
            )
        return self


class Notify(Section):
    """Who is told where a person is needed. `log`: the log of whatever finds that out; `token` goes to the webhook."""

    log: bool = True
    webhook: str | None = None
    """An address over https, or on loopback; by reference where the address itself is the secret."""
    token: str | None = None
    """By reference alone; sent as `Authorization: Bearer …`."""
    timeout: Span = Field(default=Seconds(10), le=60)
    """For the whole of a call."""
    amber: float = Field(default=Thresholds().amber, ge=0, le=1)
    red: float = Field(default=Thresholds().red, ge=0, le=1)
    """Headroom: told where less than this share of what retention keeps is left before it takes unread data."""

    @property
    def thresholds(self) -> Thresholds:
        return Thresholds(self.amber, self.red)

    @field_validator("webhook")
    @classmethod
    def _may_be_called(cls, webhook: str | None) -> str | None:
        return _callable("webhook", webhook)

    @field_validator("token")
    @classmethod
    def _by_reference(cls, token: str | None) -> str | None:
        return _referred(token)

    @model_validator(mode="after")
    def _somebody_is_told(self) -> Notify:
        if not self.log and self.webhook is None:
            raise ValueError("nobody would be told of anything; leave log on, or name a webhook")
        if self.token is not None and self.webhook is None:
            raise ValueError("a token goes with a webhook, and none is named")
        if self.red > self.amber:
            raise ValueError(f"red ({self.red}) is more than amber ({self.amber}); amber comes first")
        return self


class Metrics(Section):
    """Where figures go, for programs that draw and warn; nowhere unless said."""

    textfile: Path | None = None
    """The folder of a textfile collector of node-exporter's; somebody else's, so that it must be there."""
    otlp: str | None = None
    """Where OpenTelemetry's metrics are taken over HTTP, an address over https, or on loopback; or a reference."""
    token: str | None = None
    """By reference alone; sent as `Authorization: Bearer …`."""
    timeout: Span = Field(default=Seconds(10), le=60)
    """For all of it: looking, writing, sending."""

    @property
    def wanted(self) -> bool:
        return self.textfile is not None or self.otlp is not None

    @field_validator("otlp")
    @classmethod
    def _may_be_called(cls, otlp: str | None) -> str | None:
        return _callable("otlp", otlp)

    @field_validator("token")
    @classmethod
    def _by_reference(cls, token: str | None) -> str | None:
        return _referred(token)

    @model_validator(mode="after")
    def _somebody_gets_the_token(self) -> Metrics:
        if self.token is not None and self.otlp is None:
            raise ValueError("a token goes with otlp, and none is named")
        return self


def _callable(key: str, address: str | None) -> str | None:
    if address is None or is_reference(address):
        return address
    problem = webhook_problem(address)
    if inside := secret_inside(key, address):
        problem = f"holds {inside}; write the whole as env:NAME or file:PATH instead"
    if problem:
        raise ValueError(f"it {problem}")
    return address


def _referred(token: str | None) -> str | None:
    if token is not None and not is_reference(token):
        raise ValueError("it holds the secret itself; write env:NAME or file:PATH instead")
    return token


class Verify(Section):
    """Of verifications and previews of promotions, which read and stitch a range by themselves, in one task each."""

    pool: str = Field(default="verify", min_length=1)
    """Airflow's, of these tasks, of all streams: as many at once as it has slots."""
    pool_slots: int = Field(default=1, ge=1)
    """Of a pool that is not there yet, which Airflow's start makes; afterwards Airflow's own page changes it."""


class MaintainLimits(Section):
    """How long maintenance keeps what nobody needs any more (docs/operations.md)."""

    finished_batches: Span = Seconds(30 * 86400)
    """The folder of a committed batch; its landed payload goes as soon as it is committed."""
    given_up_batches: Span = Seconds(7 * 86400)
    """The folder of a batch that was abandoned or fenced, since anything in it last changed."""
    data_docs: Span = Seconds(90 * 86400)
    junk: Span = Seconds(30 * 86400)
    """A record that is no chunk, since it was held. Chunks of waveforms never go by age."""
    previews: Span = Field(default=Seconds(7 * 86400), ge=2 * 86400)
    """Since one was made: up to then it may be done, then it goes."""
    snapshot_age: Span = Seconds(7 * 86400)
    """A snapshot, since its successor came."""
    most_snapshots: int = Field(default=100, ge=1)
    """Of each table, however young."""
    least_snapshots: int = Field(default=10, ge=1)
    """Of each table, however old."""
    pinned_heads: Span = Seconds(30 * 86400)
    """How long a batch under way keeps the head that it stands on; without it, it ends fenced."""
    orphan_age: Span = Field(default=Seconds(3 * 86400), ge=3600)
    """A file that nothing names, since it was written and since that was found."""
    target_file: ByteSize = Field(default=128 * MIB, le=1024 * MIB)
    small_files: int = Field(default=8, ge=2)
    """So many small files of one day are worth it, and are put together to `target_file`."""


class Airflow(Section):
    """The Airflow that runs our DAGs. `keep_runs`: how long rows and logs of a run stay, whosever DAG it is of; where
    it is not said, for ever: an Airflow may be somebody else's."""

    keep_runs: Span | None = Field(default=None, ge=86400)


class Maintain(MaintainLimits):
    """`streams`: other values for single streams, by name."""

    streams: dict[str, dict[str, Any]] = Field(default_factory=dict)

    def of(self, stream: str) -> MaintainLimits:
        """The limits of one stream."""
        return MaintainLimits.model_validate({**self.model_dump(exclude={"streams"}), **self.streams.get(stream, {})})

    @model_validator(mode="after")
    def _every_stream_is_valid(self) -> Maintain:
        for name in self.streams:
            self.of(name)
        return self
