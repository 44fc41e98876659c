"""How an app of ours tells whoever submitted it why it failed: a file beside its result, whole or not at all."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from wavestitch.contracts.errors import WavestitchError
from wavestitch.write_once import write_over


def error_file(result: Path) -> Path:
    return result.with_name(f"{result.name}.error.json")


def leave_error(result: Path, error: WavestitchError) -> int:
    """Returns the app's exit code."""
    write_over(error_file(result), json.dumps(error.to_json()))
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    return 1
