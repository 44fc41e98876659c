"""Where things are: one file, `wavestitch.toml`, with environment overrides. Validated once, unknown keys refused.

Looked for as `$WAVESTITCH_CONFIG`, `wavestitch.toml`, then `.wavestitch/wavestitch.toml` (what the embedded stack
writes). An override names section and key: `WAVESTITCH_KAFKA__BOOTSTRAP`. Secrets stand in it only by reference:
`env:NAME` or `file:PATH`, resolved at the edge that needs them, never printed. Nothing else reads the environment.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, model_validator
from pydantic_settings import EnvSettingsSource, SettingsError

from wavestitch import stream_files
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.redaction import MASK, secret_inside, shown_address, shown_section
from wavestitch.contracts.stream import Stream
from wavestitch.contracts.web_address import shown_webhook
from wavestitch.secret_reference import is_reference
from wavestitch.settings_sections import (
    ANY_POOL,
    Airflow,
    Kafka,
    Maintain,
    Metrics,
    Notify,
    Payload,
    Section,
    Spark,
    Tables,
    Verify,
)

CONFIG_VARIABLE = "WAVESTITCH_CONFIG"
_PREFIX = "WAVESTITCH_"
PROOF_PREFIX = "WAVESTITCH_PROOF_"
"""What streams' `proof_key: env:NAME` begin with: secrets, and no settings."""
_PLACES = (Path("wavestitch.toml"), Path(".wavestitch/wavestitch.toml"))
_NO_FILE = "no wavestitch.toml found; `wavestitch init` writes one, `wavestitch up` makes one of its own"
_FREE_SECTIONS = (("kafka", "options"), ("tables", "properties"), ("payload", "properties"), ("spark", "conf"))
_TABLES = ("kafka", "tables", "payload", "spark", "verify", "maintain", "airflow", "notify", "metrics")
_ADDRESSES = (
    ("kafka", "bootstrap"),
    ("tables", "uri"),
    ("tables", "warehouse"),
    ("payload", "place"),
    ("spark", "master"),
)
_WHOLE = "write the whole as env:NAME or file:PATH instead"
_WAYS_OUT = {  # a reference is resolved for what connects, and a warehouse is a place: its login is the store's
    "warehouse": 'leave it out, and name it by reference in [tables.properties] ("s3.access-key-id", '
    '"s3.secret-access-key")',
    "place": 'leave it out, and name it by reference in [payload.properties] ("s3.access-key-id", '
    '"s3.secret-access-key")',
}
_CALLED = (("notify", "webhook"), ("metrics", "otlp"))


class Settings(Section):
    """`landing`: what batches read, until their offsets stand. `docs`: Data Docs. `streams`: the YAML files' folder.
    `cache`: what can be made anew at any time, of this host alone. `key_folder`: where streams' `proof_key: file:NAME`
    are. `most_streams`: so many files of streams are read. Each has six DAGs, and Airflow some time for a file."""

    kafka: Kafka
    tables: Tables
    payload: Payload = Payload()
    spark: Spark = Spark()
    verify: Verify = Verify()
    maintain: Maintain = Maintain()
    airflow: Airflow = Airflow()
    notify: Notify = Notify()
    metrics: Metrics = Metrics()
    landing: Path
    docs: Path
    streams: Path = Path("streams")
    most_streams: int = Field(default=100, ge=1, le=stream_files.MOST_STREAMS)
    cache: Path = Field(default_factory=lambda: _user_cache(os.environ))
    key_folder: Path | None = None

    def redacted(self) -> dict[str, Any]:
        """For printing at start: what is known to be no secret, and of references not even where they lead."""
        found = self.model_dump(mode="json")
        for section, key in _FREE_SECTIONS:
            found[section][key] = shown_section(found[section][key])
        for section, key in _ADDRESSES:
            if (address := found[section][key]) is not None:
                found[section][key] = shown_address(address)
        for section in ("kafka", "spark"):
            if found[section]["token"] is not None:
                found[section]["token"] = MASK
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
    def _a_pool_has_one_size(self) -> Settings:
        parts: dict[str, Kafka | Spark | Verify] = {"kafka": self.kafka, "spark": self.spark, "verify": self.verify}
        sizes = [(name, part.pool, part.pool_slots) for name, part in parts.items()]
        for (a, pool, slots), (b, other, others) in combinations(sizes, 2):
            if pool == other and slots != others:
                raise ValueError(
                    f"{a}.pool and {b}.pool are both {pool!r}, and their pool_slots are not the same "
                    f"({slots} and {others}); name two pools, or one size"
                )
        return self

    @property
    def pools(self) -> dict[str, int]:
        """How many slots each of Airflow's pools is made with, but for the one that every Airflow has."""
        named = {part.pool: part.pool_slots for part in (self.kafka, self.spark, self.verify)}
        return {name: slots for name, slots in named.items() if name != ANY_POOL}

    @model_validator(mode="after")
    def _secrets_only_by_reference(self) -> Settings:
        for section, free in _FREE_SECTIONS:
            for key, value in getattr(getattr(self, section), free).items():
                if inside := secret_inside(key, value):
                    raise ValueError(f"{section}.{free} {key!r} holds {inside}; write env:NAME or file:PATH instead")
        for section, key in _ADDRESSES:
            address = getattr(getattr(self, section), key)
            if address is not None and (inside := secret_inside(key, address)):
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
