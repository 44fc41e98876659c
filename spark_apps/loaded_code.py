"""Which code stitches, as one digest: on both sides of a Spark that was started by somebody else it must be the same.

Read when this module is loaded, with the rest of the code: what an update puts on the disk later is not what runs.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_STITCHES = ("spark_apps/*.py", "wavestitch/*.py", "wavestitch/contracts/*.py", "wavestitch/parquet/*.py")


def _digest() -> str:
    found = hashlib.sha256()
    for path in sorted(path for pattern in _STITCHES for path in _ROOT.glob(pattern)):
        content = path.read_bytes()
        found.update(f"{path.relative_to(_ROOT)} {len(content)}\n".encode() + content)
    return found.hexdigest()[:32]


LOADED_CODE = _digest()
