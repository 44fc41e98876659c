"""Units read one after another in a process of its own: `python -m consumers.unit_process`, see `unit_processes`.

Each job comes as one JSON line on standard input (never as an argument or in the environment: it holds passwords), what
happens goes out as JSON lines. The input stays open as long as the parent lives: its end ends this process.
"""

from __future__ import annotations

import gc
import logging
import os
import resource
import sys
import threading
from pathlib import Path
from queue import SimpleQueue

from consumers.byte_budget import ByteBudget
from consumers.read_job import READ_JOBS, UnitFailed, UnitProgress, UnitRead, UnitWord, word_to_line
from consumers.unit_reader import read_unit
from wavestitch.contracts.chunk_proof import ChunkProof
from wavestitch.contracts.errors import WavestitchError
from wavestitch.contracts.plan import plan_from_json
from wavestitch.kafka.client_settings import KafkaSettings

_ORPHANED = 3
_MOST_DATA = 1 << 30
"""Memory of its own that this process may have: three times what a reader needs. A batch of a few kilobytes can blow up
to gigabytes inside the client; then this process ends, and its parent has the unit read carefully."""


def main() -> int:
    # A row is freed when its batch is written; there are no cycles to look for in between, and that costs 5 % of a
    # reading.
    gc.disable()
    # Payload and passwords are in this memory: they have no place in a core file.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _bound(_MOST_DATA)
    # Whatever a library prints must not end up between the JSON lines.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    jobs: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_follow_parent, args=(jobs,), daemon=True).start()

    def say(word: UnitWord) -> None:
        out.write(word_to_line(word) + "\n")

    while True:
        line = jobs.get()
        try:
            job = READ_JOBS.read(line)
            plan = plan_from_json(job.plan)
            budget = ByteBudget(plan, [job.unit], Path(job.folder), job.budget)
            receipt = read_unit(
                plan=plan,
                unit=job.unit,
                kafka=KafkaSettings(job.bootstrap, job.options, job.token),
                folder=Path(job.folder),
                proof=ChunkProof(plan.stream.proof, bytes.fromhex(job.proof_key), plan.stream.topic),
                payload=job.payload,
                progress=lambda records, size: say(UnitProgress(records, size, budget.counts)),  # noqa: B023
                budget=budget,
                careful=job.careful,
            )
        except MemoryError:
            os.abort()  # as the client does: its parent knows what to do
        except WavestitchError as error:
            say(UnitFailed(error.to_json()))
            return 1
        say(UnitRead(receipt.to_json()))
        gc.collect()


def _bound(most: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))


def _follow_parent(jobs: SimpleQueue[bytes]) -> None:
    # Unbuffered: a buffered reader would hold a lock that the interpreter's end waits for.
    heard = b""
    while block := os.read(0, 1 << 20):
        *lines, heard = (heard + block).split(b"\n")
        for line in lines:
            jobs.put(line)
    os._exit(_ORPHANED)


if __name__ == "__main__":
    sys.exit(main())
