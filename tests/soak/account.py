"""For how long the present code was soaked, and how it ended: `account.json`, which is committed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.code_digest import code_digest
from tests.run_account import keep_run, read_run

ACCOUNT = Path(__file__).parent / "account.json"
_CODE = ("wavestitch", "consumers", "spark_apps", "tests.soak")
_KEPT = ("passed", "hours", "seed", "waveforms", "sent_bytes", "events", "disturbed", "data", "problems")


def hours_passed(account: Path = ACCOUNT) -> float:
    """Of the last soak of this very code; none where it failed."""
    found = read_run(account, code_digest(*_CODE))
    return float(found["hours"]) if found.get("passed") else 0.0


def keep_soak(report: Mapping[str, Any], account: Path = ACCOUNT) -> None:
    """Unless the same code has passed a longer one."""
    if report["passed"] and report["hours"] < hours_passed(account):
        return
    keep_run(account, code_digest(*_CODE), {name: report[name] for name in _KEPT})
