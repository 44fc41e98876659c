"""What the cases of each fault class came to on the present code: `account.json`, which is committed.

Of cases that ran clean the sums alone; a case that failed stands there as a whole, until it is run again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.code_digest import code_digest
from tests.run_account import Ranges, keep_run, numbers_of, read_run, with_range

ACCOUNT = Path(__file__).parent / "account.json"
# Beside what a case imports, what it starts as processes of their own: readers, Spark, and Airflow with its tasks.
CODE = ("tests.faults.campaign_worker", "consumers", "spark_apps", "wavestitch.flows")

Run = dict[str, Any]


@dataclass
class ClassAccount:
    """`seeds`: that ran clean. `steps`: of the protocol's model, that they took. `failed`: the runs of the others, by
    seed. `longest_run`: against `run_deadline`."""

    seeds: Ranges = field(default_factory=list)
    records: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)
    peak_mib: int = 0
    seconds: float = 0.0
    longest_run: float = 0.0
    run_deadline: float = 0.0
    failed: dict[str, Run] = field(default_factory=dict)

    @property
    def clean(self) -> set[int]:
        return set(numbers_of(self.seeds))

    @property
    def done(self) -> set[int]:
        return self.clean | {int(seed) for seed in self.failed}

    def add(self, run: Run) -> None:
        """Of a seed that was not done."""
        if not run["ok"]:
            self.failed[str(run["seed"])] = run
            return
        self.seeds = with_range(self.seeds, run["seed"], run["seed"] + 1)
        self.records += run["records"]
        self.ends = dict(sorted((Counter(self.ends) + Counter(run["ends"])).items()))
        self.steps = dict(sorted((Counter(self.steps) + Counter(run.get("steps", {}))).items()))
        self.peak_mib = max(self.peak_mib, run["peak_mib"])
        self.seconds = round(self.seconds + run["seconds"], 1)
        if run["longest_run"] > self.longest_run:
            self.longest_run, self.run_deadline = run["longest_run"], run["run_deadline"]


Accounts = dict[str, ClassAccount]


def read_classes(account: Path = ACCOUNT) -> Accounts:
    """By class, what this very code has run."""
    found = read_run(account, code_digest(*CODE)).get("classes", {})
    return {name: ClassAccount(**said) for name, said in found.items()}


def keep_classes(classes: Mapping[str, ClassAccount], account: Path = ACCOUNT) -> None:
    keep_run(account, code_digest(*CODE), {"classes": {name: asdict(c) for name, c in sorted(classes.items())}})


def add_case(run: Run, account: Path = ACCOUNT) -> None:
    classes = read_classes(account)
    classes.setdefault(run["class"], ClassAccount()).add(run)
    keep_classes(classes, account)


def forget_failed(account: Path = ACCOUNT) -> None:
    classes = read_classes(account)
    for one in classes.values():
        one.failed = {}
    keep_classes(classes, account)
