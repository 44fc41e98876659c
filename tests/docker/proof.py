"""What must hold of a composition that runs: who its processes are, what they reach, where the secrets are not."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from tests.docker.container import Container, marked
from wavestitch.contracts.redaction import secret_inside

_PRIVATE_KEY = re.compile(rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----\s+[A-Za-z0-9+/=]{40}")
# Spark hands the cluster's secret to the executors that it starts in a variable of theirs: it knows no other way.
_ALLOWED = {"_SPARK_AUTH_SECRET"}
_LARGEST_KEY_FILE = 256 << 10


def beyond_loopback(run: str) -> list[str]:
    """Whatever listens on an address that is not of this machine alone."""
    found = []
    for process, service in marked(run):
        for connection in _connections(process):
            address = ipaddress.ip_address(connection.laddr.ip)
            mapped = getattr(address, "ipv4_mapped", None) or address
            if connection.status == psutil.CONN_LISTEN and not mapped.is_loopback:
                found.append(f"{service} listens on {connection.laddr.ip}:{connection.laddr.port}")
    return sorted(set(found))


def more_than_they_need(run: str, *, user: int) -> list[str]:
    """Processes of another user, with capabilities, or that could get more."""
    found = []
    for process, service in marked(run):
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
            name = process.name()
        except (OSError, psutil.Error):
            continue
        said = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        if set(said["Uid"].split()) != {str(user)}:
            found.append(f"{service}: {name} runs as {said['Uid'].split()}")
        if int(said["CapEff"], 16) or int(said["CapPrm"], 16):
            found.append(f"{service}: {name} has capabilities {said['CapEff']}")
        if said.get("NoNewPrivs", "1").strip() != "1":
            found.append(f"{service}: {name} may get new privileges")
    return sorted(set(found))


def writable(containers: Sequence[Container]) -> list[str]:
    """Services that can write to the image's files."""
    places = ("/opt/wavestitch/written", "/usr/bin/written", "/etc/written")
    found = []
    for container in containers:
        found += [
            f"{container.service.name} can write to {place}"
            for place in places
            if container.process.poll() is None and container.run(["touch", place], seconds=30).returncode == 0
        ]
    return found


def shown_secrets(run: str, secrets: Mapping[str, str], texts: Mapping[str, str]) -> list[str]:
    """Secrets in arguments and variables of processes, and in what was printed. `texts`: place to text."""
    found = []
    for process, service in marked(run):
        try:
            arguments, variables = " ".join(process.cmdline()), process.environ()
        except psutil.Error:
            continue
        said = {f"the arguments of {service}": arguments}
        said |= {f"the variable {n} of {service}": v for n, v in variables.items() if n not in _ALLOWED}
        found += _secrets_in(said, secrets)
    return sorted({*found, *_secrets_in(texts, secrets)})


def private_keys_of_the_image(root: Path) -> list[str]:
    """Files of the image that are private keys, or have one in their text."""
    found = []
    for path in root.rglob("*"):
        if not path.is_symlink() and path.is_file() and path.stat().st_size <= _LARGEST_KEY_FILE:
            content = path.read_bytes()
            if b"\0" not in content and _PRIVATE_KEY.search(content):
                found.append("/" + path.relative_to(root).as_posix())
    return found


def secrets_the_image_tells(config: Mapping[str, Any]) -> list[str]:
    """Secrets among its variables, and in the commands that made its layers: whoever has the image reads both."""
    variables = [("variable", entry) for entry in config["Env"]]
    commands = [("layer's command", w) for h in config["history"] for w in str(h.get("created_by", "")).split()]
    found = []
    for place, word in variables + commands:
        name, _, value = word.partition("=") if "=" in word else ("", "", word)
        if why := secret_inside(name, value):
            found.append(f"a {place} of the image{' ' * bool(name)}{name} is {why}")
    return found


def _secrets_in(said: Mapping[str, str], secrets: Mapping[str, str]) -> list[str]:
    return [f"{name} is in {place}" for place, text in said.items() for name, value in secrets.items() if value in text]


def _connections(process: psutil.Process) -> list[psutil._common.pconn]:
    try:
        return list(process.net_connections(kind="inet"))
    except psutil.Error:
        return []
