"""A Spark that stays, for all streams: Spark's own Connect server, on loopback, for who has its token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spark_apps.loaded_code import LOADED_CODE
from spark_apps.submit import spark_conf, spark_environment, spark_properties, spark_submit

_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_LOOPBACK = "127.0.0.1"
_STAYS = {
    "spark.app.name": "wavestitch",
    # Its log is never rotated: what it says of each task would fill the disk.
    "spark.log.level": "WARN",
    # Its Python daemons stay with the session that they were started for, which is therefore shared and stays, too.
    "spark.connect.session.manager.defaultSessionTimeout": "-1",
    # Of a step that was killed: nobody can end its tasks, so they end when nobody asks for their outcome. That is
    # noticed when it would have to be asked for anew, and acted on when the server looks for such, every 30 s.
    "spark.connect.execute.reattachable.senderMaxStreamDuration": "30s",
    "spark.connect.execute.manager.detachedTimeout": "30s",
    "spark.connect.execute.manager.abandonedTombstonesSize": "100",
    "spark.python.daemon.module": "spark_apps.worker_daemon",
}


@dataclass(frozen=True)
class ConnectServer:
    """The program: what it is run with. `code`: what it loads, and its workers keep."""

    java_home: Path
    master: str = "local[2]"
    conf: Mapping[str, str] = field(default_factory=dict)
    also: Sequence[str] = ()
    code: str = LOADED_CODE

    def argv(self, properties: Path) -> list[str]:
        """`properties`: a file for its owner alone, since the token stands in it."""
        return [str(spark_submit()), "--master", self.master, "--properties-file", str(properties), "--class", _CLASS]

    def properties(self, *, port: int, token: str) -> str:
        door = {
            "spark.connect.grpc.binding.address": _LOOPBACK,
            "spark.connect.grpc.binding.port": str(port),
            "spark.connect.authenticate.token": token,
        }
        return spark_properties({**spark_conf(self.master, {**_STAYS, **self.conf}), **door})

    def environment(self) -> dict[str, str]:
        return spark_environment(self.java_home, also=self.also)
