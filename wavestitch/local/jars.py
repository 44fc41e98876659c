"""The Java libraries that no Python package brings: fetched once, checked against a committed list, kept in our cache.

Decides which ones (`ALL` the sets) and when a cached folder counts: only if it holds exactly the listed files
with exactly the listed digests. A folder gets its name when it is whole, so a half-fetched one is never taken for one.
Never reads or writes anybody's personal Maven or Ivy folders.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from wavestitch.child_environment import child_environment
from wavestitch.contracts.errors import BadInput, Transient, WavestitchError
from wavestitch.folder_lock import folder_lock
from wavestitch.modes import OWN_FOLDER, make_folder, refuse_open_cache

PIN_FILE = Path(__file__).with_name("jars.sha256")

_FETCH_SECONDS = 900
_REPORT_EVERY = 10


@dataclass(frozen=True, slots=True)
class Dependency:
    """A Maven coordinate, with what it depends on unless `alone`."""

    organisation: str
    artifact: str
    version: str
    alone: bool = False


@dataclass(frozen=True, slots=True)
class JarSet:
    """Jars that are used together. `name` is their prefix in the committed list and their folder in the cache."""

    name: str
    title: str
    dependencies: tuple[Dependency, ...]


KAFKA = JarSet(
    name="kafka",
    title="the Kafka broker",
    dependencies=(
        Dependency("org.apache.kafka", "kafka_2.13", "4.2.1"),
        # With its dependencies it would bring all of Kafka Connect and its web server.
        Dependency("org.apache.kafka", "kafka-tools", "4.2.1", alone=True),
        # The binding for the logging interface that Kafka itself brings; without it there are no logs.
        Dependency("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
    ),
)
_AWS_PARTS = (
    "annotations",
    "apache5-client",
    "arns",
    "auth",
    "aws-core",
    "aws-query-protocol",
    "aws-xml-protocol",
    "checksums",
    "checksums-spi",
    "crt-core",
    "endpoints-spi",
    "http-auth",
    "http-auth-aws",
    "http-auth-aws-eventstream",
    "http-auth-spi",
    "http-client-spi",
    "identity-spi",
    "json-utils",
    "metrics-spi",
    "profiles",
    "protocol-core",
    "regions",
    "retries",
    "retries-spi",
    "s3",
    "sdk-core",
    "sts",
    "third-party-jackson-core",
    "utils",
    "utils-lite",
)
# The object store of the composition: what its program loads of all that it could stand in front of.
STORE = JarSet(
    name="store",
    title="the object store",
    dependencies=(
        Dependency("org.gaul", "s3proxy", "4.1.0", alone=True),
        Dependency("args4j", "args4j", "2.37", alone=True),
        Dependency("ch.qos.logback", "logback-classic", "1.6.3", alone=True),
        Dependency("ch.qos.logback", "logback-core", "1.6.3", alone=True),
        # What S3Proxy 4.1.0 asks for is older than what the next one needs.
        Dependency("com.fasterxml.jackson.core", "jackson-annotations", "2.21", alone=True),
        Dependency("tools.jackson.core", "jackson-core", "3.2.2", alone=True),
        Dependency("tools.jackson.core", "jackson-databind", "3.2.2", alone=True),
        Dependency("tools.jackson.dataformat", "jackson-dataformat-xml", "3.2.2", alone=True),
        Dependency("com.fasterxml.woodstox", "woodstox-core", "7.0.0", alone=True),
        Dependency("org.codehaus.woodstox", "stax2-api", "4.2.2", alone=True),
        Dependency("com.google.guava", "guava", "33.7.1-jre", alone=True),
        Dependency("com.google.guava", "failureaccess", "1.0.3", alone=True),
        Dependency("jakarta.servlet", "jakarta.servlet-api", "6.0.0", alone=True),
        Dependency("org.slf4j", "slf4j-api", "2.0.18", alone=True),
        Dependency("org.reactivestreams", "reactive-streams", "1.0.4", alone=True),
        # Checksums and exceptions; the parts of one release.
        *(Dependency("software.amazon.awssdk", part, "2.54.2", alone=True) for part in _AWS_PARTS),
    ),
)
# What Spark reads the tables with, as others do: fetched only for the tests.
SPARK_TABLES = JarSet(
    name="spark-tables",
    title="Spark's access to the tables",
    dependencies=(
        Dependency("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.11.0", alone=True),
        Dependency("org.xerial", "sqlite-jdbc", "3.50.3.0", alone=True),
        Dependency("org.postgresql", "postgresql", "42.7.8", alone=True),
    ),
)
# What the benchmarks measure against: fetched only for them.
SPARK_KAFKA = JarSet(
    name="spark-kafka",
    title="Spark's own Kafka source",
    dependencies=(
        Dependency("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.1.3", alone=True),
        # The newest that there is; it works with the newer source.
        Dependency("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0", alone=True),
        Dependency("org.apache.commons", "commons-pool2", "2.12.1", alone=True),
        Dependency("org.apache.kafka", "kafka-clients", "3.9.1", alone=True),
    ),
)
PARALLEL_CONSUMER = JarSet(
    name="parallel-consumer",
    title="the Confluent Parallel Consumer",
    dependencies=(Dependency("io.confluent.parallelconsumer", "parallel-consumer-core", "0.5.3.3"),),
)
CONNECT_ICEBERG = JarSet(
    name="connect-iceberg",
    title="Kafka Connect with Iceberg's sink",
    dependencies=(
        Dependency("org.apache.kafka", "connect-runtime", "4.2.1"),
        Dependency("org.apache.iceberg", "iceberg-kafka-connect", "1.11.0"),
        # What it writes with, and what that looks for; its own distribution, which is nowhere published, has both.
        Dependency("org.apache.iceberg", "iceberg-parquet", "1.11.0"),
        Dependency("org.apache.iceberg", "iceberg-orc", "1.11.0", alone=True),
        Dependency("org.apache.logging.log4j", "log4j-slf4j2-impl", "2.25.4"),
    ),
)
ALL = (KAFKA, STORE, SPARK_TABLES, SPARK_KAFKA, PARALLEL_CONSUMER, CONNECT_ICEBERG)


def cached_jars(jar_set: JarSet, *, cache_dir: Path, java_home: Path, say: Callable[[str], None]) -> Path:
    """The folder with these jars, fetched first where missing. Raises `BadInput` if a jar is not the listed one."""
    pins = read_pins(jar_set)
    # The list's digest is in the name: other versions get another folder, and the old one stays usable.
    digest = hashlib.sha256("".join(f"{name} {pins[name]}\n" for name in sorted(pins)).encode()).hexdigest()[:12]
    folder = cache_dir.absolute() / "jars" / f"{jar_set.name}-{digest}"
    refuse_open_cache(cache_dir)
    refuse_open_cache(folder.parent)
    if not folder.exists():
        with folder_lock(folder.parent):
            if not folder.exists():
                _fetch_checked(jar_set, pins=pins, folder=folder, java_home=java_home, say=say)
    check_jars(folder, pins=pins)
    return folder


def read_pins(jar_set: JarSet) -> dict[str, str]:
    """File name to SHA-256 of each jar that the set must hold, from the committed list."""
    pins = {}
    for line in PIN_FILE.read_text().splitlines():
        digest, _, name = line.partition("  ")
        owner, _, file_name = name.partition("/")
        if owner == jar_set.name:
            pins[file_name] = digest
    if not pins:
        raise BadInput(f"{PIN_FILE} lists no jars of {jar_set.name}; make the list with `make lock-jars`")
    return pins


def digest_jars(folder: Path) -> dict[str, str]:
    """File name to SHA-256 of what is in the folder."""
    digests = {}
    for jar in sorted(folder.iterdir()):
        with jar.open("rb") as handle:
            digests[jar.name] = hashlib.file_digest(handle, "sha256").hexdigest()
    return digests


def check_jars(folder: Path, *, pins: dict[str, str]) -> None:
    """Raises `BadInput` unless the folder holds exactly these files."""
    seen = digest_jars(folder)
    wrong = sorted(name for name in seen.keys() | pins.keys() if seen.get(name) != pins.get(name))
    if wrong:
        name = wrong[0]
        raise BadInput(
            f"{len(wrong)} of the jars in {folder} are not the listed ones: {name} has SHA-256 "
            f"{seen.get(name, '(missing)')}, listed in {PIN_FILE.name} is {pins.get(name, '(not listed)')}; delete the "
            "folder to fetch them again, and if that does not help, do not use what the network delivers",
            jars=wrong,
        )


def fetch_jars(jar_set: JarSet, *, into: Path, java_home: Path, say: Callable[[str], None]) -> None:
    """Fetch the set into the folder `into`, unchecked, with the resolver that PySpark brings."""
    with tempfile.TemporaryDirectory(prefix=".ivy-", dir=into.parent) as scratch_name:
        scratch = Path(scratch_name)
        module = scratch / "ivy.xml"
        module.write_text(_ivy_module(jar_set))
        argv = [
            str(java_home / "bin" / "java"),
            *proxy_options(os.environ),
            f"-Divy.default.ivy.user.dir={scratch / 'user'}",  # otherwise it reads and fills a folder of the user's
            *("-jar", str(_ivy_jar())),
            *("-cache", str(scratch / "cache")),
            *("-ivy", str(module)),
            *("-confs", "default", "-types", "jar", "bundle", "-m2compatible"),
            *("-retrieve", str(into / "[artifact]-[revision](-[classifier]).[ext]")),
        ]
        say(f"fetching the jars for {jar_set.title}, once; this takes about half a minute")
        _run_ivy(argv, jar_set=jar_set, log=scratch / "ivy.log", say=say)


def proxy_options(environ: Mapping[str, str]) -> list[str]:
    """Java's words for the proxy that the environment names. One that asks for a password is left to the person."""
    named = environ.get("HTTPS_PROXY") or environ.get("https_proxy") or ""
    proxy = urlsplit(named if "//" in named else f"//{named}")
    if not proxy.hostname or proxy.username:
        return []
    direct = (environ.get("NO_PROXY") or environ.get("no_proxy") or "").split(",")
    hosts = "|".join(f"*{name}" if name.startswith(".") else name for name in map(str.strip, direct) if name)
    found = [f"-Dhttps.proxyHost={proxy.hostname}", f"-Dhttps.proxyPort={proxy.port or 80}"]
    return [*found, f"-Dhttp.nonProxyHosts={hosts}"] if hosts else found


def _fetch_checked(
    jar_set: JarSet, *, pins: dict[str, str], folder: Path, java_home: Path, say: Callable[[str], None]
) -> None:
    with tempfile.TemporaryDirectory(prefix=f".{jar_set.name}-", dir=folder.parent) as scratch:
        fetched = make_folder(Path(scratch) / "jars", OWN_FOLDER)
        fetch_jars(jar_set, into=fetched, java_home=java_home, say=say)
        check_jars(fetched, pins=pins)
        fetched.rename(folder)
    say(f"{len(pins)} jars for {jar_set.title} are there and are the listed ones")


def _ivy_module(jar_set: JarSet) -> str:
    lines = [
        '<ivy-module version="2.0">',
        f'<info organisation="wavestitch" module={quoteattr(jar_set.name)}/>',
        '<configurations><conf name="default"/></configurations>',
        "<dependencies>",
    ]
    # Under any other configuration than `default`, the broker's own jar is left out.
    lines += [
        f"<dependency org={quoteattr(each.organisation)} name={quoteattr(each.artifact)} rev={quoteattr(each.version)} "
        f'conf="default->default" transitive="{str(not each.alone).lower()}"/>'
        for each in jar_set.dependencies
    ]
    return "\n".join([*lines, "</dependencies>", "</ivy-module>", ""])


def _ivy_jar() -> Path:
    # Looked up, not imported: importing pyspark is slow and belongs to the Spark side.
    spec = find_spec("pyspark")
    for place in spec.submodule_search_locations or [] if spec else []:
        for jar in sorted(Path(place, "jars").glob("ivy-*.jar")):
            return jar
    raise BadInput("PySpark is not installed here, and its resolver is what fetches jars; run `make up` to install it")


def _run_ivy(argv: list[str], *, jar_set: JarSet, log: Path, say: Callable[[str], None]) -> None:
    deadline = time.monotonic() + _FETCH_SECONDS
    reported = 0
    with (
        log.open("w") as out,
        subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT, env=child_environment(os.environ)) as process,
    ):
        try:
            while process.poll() is None:
                if time.monotonic() > deadline:
                    raise _fetch_error(jar_set, log, f"was not done after {_FETCH_SECONDS} s")
                time.sleep(0.2)
                done = log.read_text(errors="replace").count("[SUCCESSFUL ]")
                if done >= reported + _REPORT_EVERY:
                    reported = done
                    say(f"{done} jars for {jar_set.title} fetched")
        finally:
            process.kill()
    if process.returncode:
        raise _fetch_error(jar_set, log, f"ended with exit code {process.returncode}")


def _fetch_error(jar_set: JarSet, log: Path, what: str) -> WavestitchError:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    # The cause comes last there, and is what helps: that something was not found follows from it.
    causes = list(dict.fromkeys(line for line in lines if line.startswith("Server access error")))
    unresolved = [line for line in lines if "not found" in line or "FAILED" in line]
    shown = "\n".join([*causes[:3], *unresolved[:10]] or lines[-10:])
    advice = "Is Maven Central within reach?"
    if any("PKIX" in line for line in causes):
        advice = (
            "Java does not trust who answers for Maven Central: where a proxy inspects TLS, name its certificate "
            "authority in SSL_CERT_FILE (for the packaged Java), or add it to the store of the Java that is installed."
        )
    return Transient(
        f"fetching the jars for {jar_set.title} {what}; nothing was kept. {advice} The resolver's words:\n{shown}"
    )
