"""Where what runs here keeps its things. Nothing is made and nothing is started."""

from __future__ import annotations

from pathlib import Path


def state_folder(root: Path, *, started_in: Path) -> Path:
    """In a checkout beside it; of an installed package, whose folder is Python's own, where it is started."""
    return (root if (root / "pyproject.toml").exists() else started_in) / ".wavestitch"


ROOT = Path(__file__).resolve().parents[2]
STATE = state_folder(ROOT, started_in=Path.cwd())
CACHE = STATE / "cache"
