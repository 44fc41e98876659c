"""Every process that we start gets a listed few variables of ours: none of the secrets of a task."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

STARTS = {"run", "Popen", "call", "check_call", "check_output"}
PROGRAM = "from wavestitch.batch.deployment import code_version; print(code_version())"


def test_git_is_asked_for_the_commit_without_the_secrets_of_the_task(tmp_path: Path) -> None:
    git = tmp_path / "git"
    git.write_text(f"#!/bin/sh\nenv > {tmp_path}/seen\necho 0123456789ab\n")
    git.chmod(0o755)
    secrets = {
        "WAVESTITCH_PROOF_ECG": "canary",
        "AIRFLOW__CORE__FERNET_KEY": "canary",
        "KAFKA_PASSWORD": "canary",
        "GIT_SSH_COMMAND": "canary",
    }
    env = {**os.environ, **secrets, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True)
    if (ROOT / ".git").exists():  # otherwise nobody asks git
        assert done.stdout.strip().endswith("+0123456789ab")
        assert "canary" not in (tmp_path / "seen").read_text()


def test_no_process_is_started_without_saying_what_it_gets() -> None:
    found = []
    for folder in ("wavestitch", "spark_apps", "consumers", "dags", "plugins"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                    continue
                module = call.func.value
                if isinstance(module, ast.Name) and module.id == "subprocess" and call.func.attr in STARTS:
                    found.append((path.relative_to(ROOT).as_posix(), call.lineno, {k.arg for k in call.keywords}))
                assert not (
                    isinstance(module, ast.Name) and module.id == "os" and call.func.attr in ("system", "popen")
                )
    assert len(found) > 4
    assert [(path, line) for path, line, said in found if "env" not in said] == []
