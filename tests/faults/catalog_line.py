"""A catalog behind a proxy: Iceberg's REST protocol over HTTP, or a database in PostgreSQL; and a deployment on it.

Says what a commit looks like on its way there. Never judges.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from tests.deployment_rig import STREAM
from tests.domain.rest_catalog import rest_catalog
from tests.faults.fault_class import Bench
from tests.faults.local_faults_batch import Produced, carry, make_deployment, produce_mixture
from tests.faults.tcp_proxy import TcpProxy, Wanted
from tests.postgresql import running_postgresql
from wavestitch.local.loopback_port import LOOPBACK, free_ports

_TABLES = ("waveforms", "waveforms", "batches")


class Kind(StrEnum):
    REST = "REST"
    POSTGRESQL = "PostgreSQL"


@dataclass(frozen=True)
class Scene:
    """A deployment whose catalog is behind the proxy, and the dice of the case. `table`: one of those that the next
    batch commits to. `waits`: how many sessions of the database wait for another one; none of a REST catalog."""

    kind: Kind
    folder: Path
    produced: Produced
    rng: random.Random
    proxy: TcpProxy
    table: str
    waits: Callable[[], int]

    @property
    def commit(self) -> Wanted:
        """The request by which a commit to the table takes effect."""
        if self.kind is Kind.REST:
            request = f"POST /v1/namespaces/{STREAM}/tables/{self.table} ".encode()
            return lambda _, block: block.startswith(request)
        place = f"/{STREAM}/{self.table}/metadata/".encode()
        return lambda before, block: b"COMMIT" in block and b"UPDATE iceberg_tables" in before and place in before


@contextmanager
def set_scene(bench: Bench, seed: int, kind: Kind) -> Iterator[Scene]:
    """Records of the seed's own, and a deployment that has taken up some of them, or none."""
    rng = random.Random(f"{kind} {seed}")
    with _served(kind, bench.folder / "served") as (port, address, waits), TcpProxy(free_ports(1)[0], port) as proxy:
        produced = produce_mixture(bench.bootstrap, seed=seed)
        total = len(produced.records)
        most = rng.choice((total, total * 2 // 3))
        folder = make_deployment(
            bench.folder / "deployment",
            bootstrap=bench.bootstrap,
            topic=produced.topic,
            most=most,
            catalog=address.replace(f":{port}", f":{proxy.port}"),
        )
        first = most == total or rng.random() < 0.5
        if not first:
            carry(folder)
        # What cannot be published is in the first batch; a later one may have nothing to hold.
        table = rng.choice((*_TABLES, "held") if first else _TABLES)
        yield Scene(kind, folder, produced, rng, proxy, table, waits)


def wait_for_answers(folder: Path, seconds: int) -> None:
    """So long the deployment waits for its catalog from now on; a minute unless told."""
    path = folder / "wavestitch.toml"
    path.write_text(path.read_text().partition("answer_timeout")[0] + f'answer_timeout = "{seconds} s"\n')


@contextmanager
def _served(kind: Kind, folder: Path) -> Iterator[tuple[int, str, Callable[[], int]]]:
    if kind is Kind.REST:
        with rest_catalog(folder) as (settings, _):
            yield int(urlsplit(settings.uri).port or 0), settings.uri, lambda: 0
        return
    with running_postgresql() as server:

        def waits() -> int:
            with server.connection("postgres") as asked:
                found = asked.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'").fetchone()
            assert found is not None
            return int(found[0])

        address = server.address(server.new_database())
        assert f"{LOOPBACK}:{server.port}" in address
        yield server.port, address, waits
