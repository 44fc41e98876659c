"""Where figures are kept, `benchmarks/results`, and what machine they are of. Decides nothing about them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results")


def write_figures(target: Path, figures: Mapping[str, Any]) -> None:
    """Whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.with_name(f".{target.name}")
    scratch.write_text(json.dumps(figures, indent=1) + "\n")
    scratch.replace(target)


def machine() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30),
        "python": sys.version.split()[0],
        "load": round(os.getloadavg()[0], 1),
    }
