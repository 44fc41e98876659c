"""kubernetes/ as kustomize would read it, as far as our files go: a list of resources, and patches of RFC 6902.

Tests have no kustomize. Of another word than ours this says that it does not know it; `kubectl kustomize` was held
against it by hand (kubernetes/README.md).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import ROOT

KUBERNETES = ROOT / "kubernetes"
BASE = KUBERNETES / "base"
OVERLAYS = ("one-node", "cluster")
_KNOWN = {"apiVersion", "kind", "namespace", "resources", "patches"}
Doc = dict[str, Any]


def rendered(folder: Path) -> list[Doc]:
    """All resources of a folder with a kustomization, patched."""
    said = yaml.safe_load((folder / "kustomization.yaml").read_text())
    if unknown := said.keys() - _KNOWN:
        raise ValueError(f"{folder.name}/kustomization.yaml: {sorted(unknown)} is not known here")
    docs: list[Doc] = []
    for name in said["resources"]:
        path = folder / name
        docs += rendered(path) if path.is_dir() else [d for d in yaml.safe_load_all(path.read_text()) if d]
    for patch in said.get("patches", []):
        wanted = [d for d in docs if _is_target(d, patch["target"])]
        if not wanted:
            raise ValueError(f"{folder.name}/kustomization.yaml: nothing is {patch['target']}")
        for doc in wanted:
            for step in yaml.safe_load(patch["patch"]):
                _change(doc, step)
    return docs


def _is_target(doc: Doc, target: Mapping[str, str]) -> bool:
    return doc["kind"] == target["kind"] and re.fullmatch(target["name"], doc["metadata"]["name"]) is not None


def _change(doc: Doc, step: Mapping[str, Any]) -> None:
    *path, last = step["path"].removeprefix("/").split("/")
    at: Any = doc
    for word in path:
        at = at[int(word)] if isinstance(at, list) else at[word]
    key: Any = int(last) if isinstance(at, list) else last
    match step["op"]:
        case "add":
            at[key] = copy.deepcopy(step["value"])
        case "replace":
            if at[key] is None:
                raise ValueError(f"nothing to replace at {step['path']}")
            at[key] = copy.deepcopy(step["value"])
        case "test":
            if at[key] != step["value"]:
                raise ValueError(f"{step['path']} is {at[key]!r}, not {step['value']!r}")
        case other:
            raise ValueError(f"{other!r} is not known here")


def named(doc: Doc) -> str:
    return f"{doc['kind']} {doc['metadata']['name']}"


def of_kind(docs: Sequence[Doc], kind: str) -> dict[str, Doc]:
    return {d["metadata"]["name"]: d for d in docs if d["kind"] == kind}


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """The places in which two documents differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            yield from differences(one.get(key), other.get(key), f"{path}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for n, (a, b) in enumerate(zip(one, other, strict=True)):
            yield from differences(a, b, f"{path}/{n}")
    elif one != other:
        yield path


@dataclass(frozen=True, slots=True)
class Pod:
    """What runs a service of the composition: its container, and what stands around it."""

    name: str
    spec: Doc
    labels: Mapping[str, str]

    @property
    def container(self) -> Doc:
        (found,) = self.spec["containers"]
        return dict(found)

    @property
    def role(self) -> str:
        return self.labels["wavestitch/role"]


def pods(docs: Sequence[Doc]) -> list[Pod]:
    """Of each resource that has a template for one."""
    templates = ((d["metadata"]["name"], d["spec"]["template"]) for d in docs if "template" in d.get("spec", {}))
    return [Pod(name, t["spec"], t["metadata"]["labels"]) for name, t in templates]
