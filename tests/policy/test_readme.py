"""What the README tells a newcomer to type exists, and its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from wavestitch.cli import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = "\n".join(re.findall(r"```sh\n(.*?)```", README, re.DOTALL))
COMMANDS = sorted(set(re.findall(r"^wavestitch ([a-z]+)", BLOCKS, re.MULTILINE)))
TARGETS = sorted(set(re.findall(r"make ([a-z]+)", README)))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_exists(command: str) -> None:
    found = CliRunner().invoke(app, [command, "--help"])
    assert found.exit_code == 0, found.output


def test_every_option_of_the_readme_exists() -> None:
    for command, rest in re.findall(r"^wavestitch ([a-z]+)([^#\n]*)", BLOCKS, re.MULTILINE):
        shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).output
        for option in re.findall(r"--[a-z-]+", rest):
            assert option in shown, f"wavestitch {command} has no {option}"


@pytest.mark.parametrize("target", TARGETS)
def test_a_make_target_of_the_readme_exists(target: str) -> None:
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / link).exists(), f"{page.relative_to(ROOT)} links to {link}, which is not there"


def test_no_page_names_a_machine() -> None:
    for page in PAGES:
        assert not re.search(r"(/home/|/root/|/Users/)", page.read_text()), page
