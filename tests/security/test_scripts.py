"""What builds and checks the project installs what is pinned and runs nothing that it has just fetched (check 10).

For scripts what a checker of workflows looks for in those: there are no workflows of a forge here.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

SHELL = [
    path
    for path in sorted([*ROOT.glob("scripts/*"), *ROOT.glob(".ci/*"), *ROOT.glob("docker/bin/*")])
    if path.is_file() and re.match(r"#!/(bin/sh|usr/bin/env bash)\n", path.read_text(encoding="utf-8"))
]
RECIPES = [*SHELL, ROOT / "Makefile", ROOT / "docker" / "Dockerfile"]
DANGERS = {
    "runs what it fetched": r"(curl|wget)\b[^\n]*\|\s*(ba|z)?sh\b|<\((curl|wget)\b|(ba|z)?sh\s+-c\s+\"\$\((curl|wget)",
    "fetches by itself": r"(^|[\s;&|(])(curl|wget)\s",
    "fetches without a check of the server": r"--insecure\b|--no-check-certificate|--trusted-host|verify=False",
    "obeys a text": r"(^|[\s;&|(])eval\s",
    "takes packages from elsewhere": r"--(extra-)?index-url\s|--find-links\s",
    "lets everybody in": r"chmod\s+(-R\s+)?([0-7]*[2367]\b|[a-z]*o?\+[a-z]*w)|--privileged|sudo\s",
    "shows its secrets": r"set\s+-[a-z]*x",
}


def commands(path: Path) -> list[str]:
    """Of a script or recipe: each with the lines that it goes on in, without comments."""
    text = re.sub(r"\\\n", " ", path.read_text(encoding="utf-8"))
    return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def dangers(command: str) -> set[str]:
    return {what for what, pattern in DANGERS.items() if re.search(pattern, command)}


def unpinned(command: str) -> bool:
    """Whether it installs packages of others that no digest is known of; our own come alone."""
    return bool(re.search(r"\bpip3? (install|sync)\b", command)) and not re.search(
        r"--require-hashes\b|--no-deps\b", command
    )


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("script", SHELL, ids=name)
def test_a_script_ends_at_the_first_command_that_fails(script: Path) -> None:
    first = next(c for c in commands(script) if not c.startswith("#!"))
    assert re.match(r"set -eu(o pipefail)?$", first), f"{name(script)} begins with {first!r}"


@pytest.mark.parametrize("recipe", RECIPES, ids=name)
def test_what_it_installs_is_pinned_and_nothing_that_it_fetched_is_run(recipe: Path) -> None:
    for command in commands(recipe):
        assert not dangers(command), f"{name(recipe)}: {command}"
        assert not unpinned(command), f"{name(recipe)} installs without digests: {command}"


@pytest.mark.parametrize(
    "command",
    [
        "curl -sSf https://x.example/install | sh",
        'bash -c "$(wget -qO- https://x.example)"',
        "pip install uv",
        "uv pip sync requirements.txt",
        'eval "$FOUND"',
        "chmod 777 /cache",
        "chmod -R a+w .",
        "pip install --trusted-host x.example --require-hashes -r x.txt",
        "set -eux",
        "wget https://x.example/kafka.tgz",
    ],
)
def test_what_it_looks_for_would_be_found(command: str) -> None:
    assert dangers(command) or unpinned(command)
