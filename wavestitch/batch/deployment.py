"""The real edges, made from the settings: what a step gets its log, tables and folders from. Decides nothing."""

from __future__ import annotations

import os
import re
import resource
import subprocess
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path

from consumers.log_view import KafkaLog
from wavestitch import __version__
from wavestitch.batch.history import History
from wavestitch.batch.work_folder import WorkFolder, kept_row
from wavestitch.child_environment import child_environment
from wavestitch.contracts.chunk_proof import ChunkProof
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.plan_id import is_plan_id
from wavestitch.contracts.redaction import is_reference, spark_redaction
from wavestitch.contracts.spark_address import RemoteSpark, read_spark_address
from wavestitch.contracts.stream import Stream
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.payload_store import BatchPayload, PayloadStore, not_named, open_payload_store
from wavestitch.plain_files import below
from wavestitch.secret_reference import proof_of, resolve_secret, resolve_secrets
from wavestitch.settings import Settings, declared, load_settings, load_stream
from wavestitch.stream_files import read_draft, read_settled_stream, read_streams
from wavestitch.tables.access.own_settings import be_guest, only_own_settings
from wavestitch.tables.access.time_outs import TimeOuts
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.lookup.id_index import IdIndex
from wavestitch.tables.stream_tables import StreamTables

_STREAM = re.compile(r"[a-z][a-z0-9_]{0,47}")
_SHOWN = 120
_REDACTION = "spark.redaction.regex"


def leave_no_core_file() -> None:
    """Whoever carries a batch has passwords and samples in its memory, which no crash may write to a disk."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


@dataclass(frozen=True)
class Deployment:
    """One process's view of the settings. Nothing is opened before it is used.

    `guest`: the process is somebody else's, and nothing that all of it shares is changed.
    """

    settings: Settings = field(default_factory=load_settings)
    guest: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.guest:
            be_guest()
        else:
            leave_no_core_file()
            only_own_settings()

    @cached_property
    def kafka(self) -> KafkaSettings:
        options = resolve_secrets(self.settings.kafka.options)
        return KafkaSettings(self.settings.kafka.bootstrap, options, self.settings.kafka.token)

    @cached_property
    def spark_conf(self) -> dict[str, str]:
        """The settings' own, with their secrets. What stands there by reference is one, whatever its key, there and in
        what Spark is told of the catalog: it is told to show none of it."""
        written, catalog = self.settings.spark.conf, self.settings.tables
        found = resolve_secrets(written)
        referred = [key for key, value in found.items() if value != written[key]]
        of_catalog = {"uri": catalog.uri, **catalog.properties}
        referred += [f"spark.sql.catalog.{catalog.catalog}.{k}" for k, v in of_catalog.items() if is_reference(v)]
        own = [found[_REDACTION]] if _REDACTION in found else []
        return {**found, _REDACTION: "|".join([*own, spark_redaction(referred)])} if referred else found

    def remote_spark(self) -> RemoteSpark | None:
        """The Spark that is there already, where the settings name one."""
        spark = self.settings.spark
        if spark.remote is None or spark.token is None:
            return None
        return RemoteSpark(read_spark_address(spark.remote), resolve_secret(spark.token).strip())

    @cached_property
    def log(self) -> KafkaLog:
        return KafkaLog(self.kafka)

    def catalog_settings(self) -> CatalogSettings:
        found = self.settings.tables
        properties = resolve_secrets(found.properties)
        time_outs = TimeOuts(found.connect_timeout, found.answer_timeout)
        uri = resolve_secret(found.uri)
        # What a reference led to is not what stands in the settings.
        referred = {v for k, v in properties.items() if v != found.properties[k]} | ({uri} - {found.uri})
        return CatalogSettings(found.catalog, uri, found.warehouse, properties, time_outs, frozenset(referred))

    @cached_property
    def payload_store(self) -> PayloadStore | None:
        """What has the payload of batches, where that is not in their folders."""
        place = self.settings.payload.at
        return None if place is None else open_payload_store(place)

    def payload_apart(self, landing: str) -> BatchPayload:
        """The same, of a landing file that has its payload apart."""
        if self.payload_store is None:
            raise not_named(landing)
        return self.payload_store.of(Path(landing).parent)

    def proof(self, stream: Stream) -> ChunkProof:
        """What its chunks must carry, with the key."""
        return proof_of(stream, keys=self.settings.key_folder)

    def tables(self, stream: str) -> StreamTables:
        name = plain_name(stream)
        index = IdIndex(self.settings.cache / "ids")
        return StreamTables(
            self.catalog_settings(),
            name,
            samples=lambda: self.stream(name).samples,
            encoding=lambda: self.stream(name).encoding,
            id_index=index,
            apart=self.payload_apart,
        )

    def history(self, stream: str) -> History:
        return History(self.tables(stream), stream, partial(kept_row, self.settings.landing, stream))

    def stream(self, name: str) -> Stream:
        return load_stream(self.settings, name)

    def settled_stream(self, name: str) -> Stream:
        """The same, for whoever acts by it: not while its file is being written."""
        declared(self.settings).check(name)
        return read_settled_stream(self.settings.streams, name)

    def draft(self, name: str) -> Stream:
        """Its definition that is not in force, in `streams/drafts/NAME.yaml`."""
        return read_draft(self.settings.streams, self.stream(name).name)

    def group_users(self, group: str) -> list[Stream]:
        """The streams that name this consumer group; files that declare none are somebody else's trouble."""
        found = read_streams(declared(self.settings)).values()
        return [stream for stream in found if not isinstance(stream, BadInput) and stream.group == group]

    def folder(self, stream: str, plan_id: str) -> WorkFolder:
        return WorkFolder(self.settings.landing, plain_name(stream), plan_id, payload=lambda: self.payload_store)

    def docs_folder(self, stream: str, plan_id: str) -> Path:
        if plan_id and not is_plan_id(plan_id):  # none: a rewind has no plan
            name = plain_name(stream)
            raise BadInput(f"{ascii(plan_id)[:_SHOWN]} is not a plan id; `wavestitch batches {name}` lists them")
        return below(self.settings.docs, plain_name(stream), plan_id)


def plain_name(stream: str) -> str:
    """A stream's name, before it becomes part of a path or of a table's name."""
    if not _STREAM.fullmatch(stream):
        raise BadInput(
            f"{ascii(stream)[:_SHOWN]} is not the name of a stream (a-z, 0-9 and _, beginning with a letter, at most "
            "48); `wavestitch status` lists them"
        )
    return stream


@cache
def code_version() -> str:
    """What made a plan: the package's version, and the commit where it runs from a checkout. Asked once a process."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return __version__
    found = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
        env=child_environment(os.environ),
    )
    return f"{__version__}+{found.stdout.strip()}" if found.returncode == 0 else __version__
