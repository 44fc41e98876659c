"""One unit read in a process of its own: `python -m consumers.unit_process`, started by `unit_reader.read_units`.

The job comes as one JSON line on standard input (never as an argument or in the environment: it holds passwords), what
happens goes out as JSON lines. The input stays open as long as the parent lives: its end ends this process.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import sys
import threading
from pathlib import Path
from typing import Any

from consumers.client_settings import KafkaSettings
from consumers.unit_reader import read_unit
from wavestitch.contracts.errors import WavestitchError
from wavestitch.contracts.plan import plan_from_json

_ORPHANED = 3


def main() -> int:
    # A row is freed when its batch is written; there are no cycles to look for, and looking costs 5 % of a reading.
    gc.disable()
    # Whatever a library prints must not end up between the JSON lines.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    job = json.loads(_read_line())
    threading.Thread(target=_follow_parent, daemon=True).start()

    def say(**words: Any) -> None:
        out.write(json.dumps(words) + "\n")

    try:
        receipt = read_unit(
            plan=plan_from_json(job["plan"]),
            unit=job["unit"],
            kafka=KafkaSettings(bootstrap=job["bootstrap"], options=job["options"]),
            folder=Path(job["folder"]),
            progress=lambda records, size: say(progress=[records, size]),
        )
    except WavestitchError as error:
        say(error=error.to_json())
        return 1
    say(receipt=receipt.to_json())
    return 0


def _read_line() -> bytes:
    # Unbuffered: a buffered reader would hold a lock in the thread below that the interpreter's end waits for.
    line = b""
    while not line.endswith(b"\n"):
        block = os.read(0, 1 << 20)
        if not block:
            os._exit(_ORPHANED)
        line += block
    return line


def _follow_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(_ORPHANED)


if __name__ == "__main__":
    sys.exit(main())
