"""Where things are: one file, `wavestitch.toml`, with environment overrides. Validated once, unknown keys refused.

Looked for as `$WAVESTITCH_CONFIG`, `wavestitch.toml`, then `.wavestitch/wavestitch.toml` (what the embedded stack
writes). An override names section and key: `WAVESTITCH_KAFKA__BOOTSTRAP`. Secrets stand in it only by reference:
`env:NAME` or `file:PATH`, resolved at the edge that needs them, never printed. Nothing else reads the environment.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_settings import EnvSettingsSource, SettingsError

from wavestitch import stream_files
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.headroom import Thresholds
from wavestitch.contracts.quantities import Seconds
from wavestitch.contracts.redaction import MASK, secret_inside, shown_address, shown_section
from wavestitch.contracts.spark_address import read_spark_address
from wavestitch.contracts.stream import MIB, ByteSize, Span, Stream
from wavestitch.contracts.warehouse import plain_warehouse
from wavestitch.contracts.web_address import shown_webhook, webhook_problem
from wavestitch.secret_reference import is_reference

CONFIG_VARIABLE = "WAVESTITCH_CONFIG"
_PREFIX = "WAVESTITCH_"
PROOF_PREFIX = "WAVESTITCH_PROOF_"
"""What streams' `proof_key: env:NAME` begin with: secrets, and no settings."""
_PLACES = (Path("wavestitch.toml"), Path(".wavestitch/wavestitch.toml"))
_NO_FILE = "no wavestitch.toml found; `wavestitch init` writes one, `wavestitch up` makes one of its own"
_FREE_SECTIONS = (("kafka", "options"), ("tables", "properties"), ("spark", "conf"))
_TABLES = ("kafka", "tables", "spark", "maintain", "notify", "metrics")
_ADDRESSES = (("kafka", "bootstrap"), ("tables", "uri"), ("tables", "warehouse"), ("spark", "master"))
_WHOLE = "write the whole as env:NAME or file:PATH instead"
_WAYS_OUT = {  # a reference is resolved for what connects, and a warehouse is a place: its login is the store's
    "warehouse": 'leave it out, and name it by reference in [tables.properties] ("s3.access-key-id", '
    '"s3.secret-access-key")'
}
_CALLED = (("notify", "webhook"), ("metrics", "otlp"))


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Kafka(_Section):
    """The broker. `options`: further librdkafka settings, from an allow-list (`wavestitch.kafka.client_settings`)."""

    bootstrap: str
    options: dict[str, str] = Field(default_factory=dict)


class Tables(_Section):
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


class Spark(_Section):
    """Where Spark runs and how; `conf` is handed to spark-submit. `connection`: Airflow's, where Airflow submits.

    `remote`: a Spark that is there already, which then does all stitching; none of the others is for it, but `pool`.
    """

    master: str = "local[2]"
    remote: str | None = None
    token: str | None = None
    """Of `remote`, by reference alone."""
    conf: dict[str, str] = Field(default_factory=dict)
    java_home: Path | None = None
    connection: str = "spark_default"
    pool: str = "default_pool"
    """Airflow's, of the tasks that start a Spark; it must be there, or they wait for ever. One slot: one at a time."""
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


class Notify(_Section):
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


class Metrics(_Section):
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


class MaintainLimits(_Section):
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


class Settings(_Section):
    """`landing`: what batches read, until their offsets stand. `docs`: Data Docs. `streams`: the YAML files' folder.
    `cache`: what can be made anew at any time, of this host alone. `key_folder`: where streams' `proof_key: file:NAME`
    are. `most_streams`: so many files of streams are read."""

    kafka: Kafka
    tables: Tables
    spark: Spark = Spark()
    maintain: Maintain = Maintain()
    notify: Notify = Notify()
    metrics: Metrics = Metrics()
    landing: Path
    docs: Path
    streams: Path = Path("streams")
    most_streams: int = Field(default=500, ge=1, le=10_000)
    cache: Path = Field(default_factory=lambda: _user_cache(os.environ))
    key_folder: Path | None = None

    def redacted(self) -> dict[str, Any]:
        """For printing at start: what is known to be no secret, and of references not even where they lead."""
        found = self.model_dump(mode="json")
        for section, key in _FREE_SECTIONS:
            found[section][key] = shown_section(found[section][key])
        for section, key in _ADDRESSES:
            found[section][key] = shown_address(found[section][key])
        if found["spark"]["token"] is not None:
            found["spark"]["token"] = MASK
        for section, key in _CALLED:
            if (address := found[section][key]) is not None:
                found[section][key] = MASK if is_reference(address) else shown_webhook(address)
            if found[section]["token"] is not None:
                found[section]["token"] = MASK
        return found

    def __repr__(self) -> str:
        return f"Settings({self.redacted()!r})"

    __str__ = __repr__

    @model_validator(mode="after")
    def _cache_outside_the_landing(self) -> Settings:
        if self.cache.absolute().is_relative_to(self.landing.absolute()):
            raise ValueError(f"cache {self.cache} is inside landing, which hosts may share; name a folder of this host")
        return self

    @model_validator(mode="after")
    def _secrets_only_by_reference(self) -> Settings:
        for section, free in _FREE_SECTIONS:
            for key, value in getattr(getattr(self, section), free).items():
                if inside := secret_inside(key, value):
                    raise ValueError(f"{section}.{free} {key!r} holds {inside}; write env:NAME or file:PATH instead")
        for section, key in _ADDRESSES:
            if inside := secret_inside(key, getattr(getattr(self, section), key)):
                raise ValueError(f"{section}.{key} holds {inside}; {_WAYS_OUT.get(key, _WHOLE)}")
        return self


def load_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings of this process; raises `BadInput` with a sentence."""
    env = os.environ if environment is None else environment
    path = _config_path(env)
    try:
        found = _read_toml(path.read_text(), where=str(path)) if path else {}
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read as TOML: {error}") from None
    _lay_over(found, _Overrides(env).checked())
    return _validated(found, where=str(path) if path else f"the environment ({_NO_FILE})")


def parse_settings(text: str, *, where: str) -> Settings:
    """Those of a file with this text, whatever the environment says; raises `BadInput` with a sentence."""
    return _validated(_read_toml(text, where=where), where=where)


def _read_toml(text: str, *, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise BadInput(f"{where} cannot be read as TOML: it is nested too deep") from None
    except ValueError as error:
        raise BadInput(f"{where} cannot be read as TOML: {error}") from None


def _validated(found: Mapping[str, Any], *, where: str) -> Settings:
    try:
        return Settings.model_validate(found)
    except ValidationError as error:
        problems = "; ".join(_problem(e["loc"], e["msg"]) for e in error.errors())
        raise BadInput(f"settings from {where}: {problems}; see docs/settings.md") from None


def load_stream(settings: Settings, name: str) -> Stream:
    """The stream that `streams/NAME.yaml` declares. Only one that is there is opened: a name never becomes a path."""
    declared(settings).check(name)
    return stream_files.read_stream(settings.streams, name)


def stream_names(settings: Settings) -> list[str]:
    return list(declared(settings).names)


def declared(settings: Settings) -> stream_files.Declared:
    return stream_files.find_streams(settings.streams, most=settings.most_streams, landing=settings.landing)


def _user_cache(env: Mapping[str, str]) -> Path:
    return Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wavestitch"


def _problem(place: tuple[int | str, ...], message: str) -> str:
    where = ".".join(str(p) for p in place)
    message = message.removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


def _config_path(env: Mapping[str, str]) -> Path | None:
    named = env.get(CONFIG_VARIABLE)
    if named:
        return Path(named)
    return next((p for p in _PLACES if p.is_file()), None)


class _Overrides(EnvSettingsSource):
    """What the environment says of the settings; of a list or a table, JSON or one entry a variable."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._given = {name: value for name, value in environment.items() if name != CONFIG_VARIABLE}
        super().__init__(Settings, env_prefix=_PREFIX, env_nested_delimiter="__", case_sensitive=False)  # type: ignore[arg-type]  # any model will do

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return {name.lower(): value for name, value in self._given.items()}

    def checked(self) -> dict[str, Any]:
        for name in self._given:
            if name.startswith(_PREFIX) and not name.startswith(PROOF_PREFIX):
                section, *inner = name.removeprefix(_PREFIX).lower().split("__")
                if section not in Settings.model_fields or (inner and section not in _TABLES):
                    raise BadInput(f"{name} does not name a setting; see docs/settings.md")
        try:
            return self()
        except SettingsError as error:
            raise BadInput(f"the environment: {error}; see docs/settings.md") from None


def _lay_over(found: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(found.get(key), dict):
            _lay_over(found[key], value)
        else:
            found[key] = value
