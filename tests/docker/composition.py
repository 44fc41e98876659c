"""docker/compose.yaml as a container engine would read it: variables put in, extensions merged, services in order.

Knows just the words that our file uses; of another one it says that it does not know it. Starts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import ROOT

COMPOSE = ROOT / "docker" / "compose.yaml"
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)(?::-([^}]*))?\}")
_UNITS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_KNOWN = {
    *("image", "build", "init", "user", "read_only", "cap_drop", "security_opt", "restart", "stop_grace_period"),
    *("logging", "command", "tmpfs", "deploy", "depends_on", "environment", "ports", "volumes", "secrets"),
    *("healthcheck", "shm_size", "stop_signal", "profiles"),
}


@dataclass(frozen=True, slots=True)
class Service:
    """One service; `said` is all that the file says of it."""

    name: str
    said: Mapping[str, Any]

    @property
    def command(self) -> list[str]:
        return list(self.said["command"])

    @property
    def environment(self) -> dict[str, str]:
        return {name: str(value) for name, value in self.said.get("environment", {}).items()}

    @property
    def needs(self) -> dict[str, str]:
        """Service to the condition that it must meet before this one starts."""
        return {name: how["condition"] for name, how in self.said.get("depends_on", {}).items()}

    @property
    def health(self) -> list[str]:
        """The words of its health check; none where it has none."""
        kind, *words = self.said.get("healthcheck", {}).get("test", ["NONE"])
        if kind not in ("CMD", "NONE"):
            raise ValueError(f"{self.name}: the health check is a {kind}; only CMD is known here")
        return words

    @property
    def once(self) -> bool:
        """Whether it is expected to end."""
        return bool(self.said.get("restart") == "no")

    @property
    def stop_signal(self) -> str:
        return str(self.said.get("stop_signal", "SIGTERM"))

    @property
    def memory(self) -> int:
        """Its limit, in bytes."""
        return size(self.said["deploy"]["resources"]["limits"]["memory"])

    def mounts(self) -> list[tuple[str, str, bool]]:
        """Volume or folder of this machine, place in the container, and whether it is read only."""
        found = []
        for said in self.said.get("volumes", []):
            source, place, *rest = str(said).split(":")
            found.append((source, place, rest == ["ro"]))
        return found

    @property
    def secrets(self) -> dict[str, str]:
        """Name of each that it sees to its place in the container."""
        return {said["source"]: said["target"] for said in self.said.get("secrets", [])}

    def scratch(self) -> dict[str, str]:
        """Place of each file system in memory to its options."""
        return dict(str(said).split(":", 1) for said in self.said.get("tmpfs", []))


@dataclass(frozen=True, slots=True)
class Composition:
    """All services by name, in the file's order; `secrets`: name to its file."""

    services: Mapping[str, Service]
    secrets: Mapping[str, Path]
    said: Mapping[str, Any]

    def all_needed(self, name: str) -> set[str]:
        """What must be there before this service starts, and what these need."""
        needs = set(self.services[name].needs)
        return needs.union(*(self.all_needed(other) for other in needs))

    def in_order(self, *, profiles: frozenset[str] = frozenset()) -> list[Service]:
        """Those that start without being asked for (and those of `profiles`), each after all that it needs."""
        wanted = [s for s in self.services.values() if set(s.said.get("profiles", [])) <= profiles]
        found: list[Service] = []
        while len(found) < len(wanted):
            ready = [s for s in wanted if s not in found and set(s.needs) <= {f.name for f in found}]
            if not ready:
                raise ValueError(f"services wait for each other: {[s.name for s in wanted if s not in found]}")
            found += ready
        return found


def read_composition(path: Path = COMPOSE, *, variables: Mapping[str, str] | None = None) -> Composition:
    """The file with these variables, or with its own defaults."""
    said = yaml.safe_load(put_in(path.read_text(), variables or {}))
    services = {name: Service(name, values) for name, values in said["services"].items()}
    for service in services.values():
        if unknown := service.said.keys() - _KNOWN:
            raise ValueError(f"{service.name} says {sorted(unknown)}, which the runner of tests does not know yet")
    secrets = {name: path.parent / values["file"] for name, values in said["secrets"].items()}
    return Composition(services, secrets, said)


def put_in(text: str, variables: Mapping[str, str]) -> str:
    """`${NAME:-default}` by its value. A variable without a default that is not given is an error."""

    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        if (found := variables.get(name) or default) is None:
            raise ValueError(f"the variable {name} has no default and is not given")
        return found

    return _VARIABLE.sub(value, text)


def size(text: str) -> int:
    """Bytes of `512m`."""
    return int(float(text[:-1]) * _UNITS[text[-1].lower()])
