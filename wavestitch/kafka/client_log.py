"""What Kafka's client says of itself, in our log: each thing once a minute, however often, and by however many clients.

Of a broker that is away each client complains at each of its tries, forty times a second, and the one sentence that
says what to do stood behind hundreds of such lines. What is said again says how often it was said meanwhile, so nothing
is hidden. Decides nothing.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

AGAIN_S = 60.0
_MOST = 200
"""Things that are remembered: brokers and their ways to fail are few."""
_HOW_OFTEN = re.compile(r" \(after [^()]*(\([^()]*\))?[^()]*\)$")
_WHO = re.compile(r"#(producer|consumer)-\d+")


@dataclass
class _Told:
    at: float
    since: int = 0


class SaidOnce(logging.Filter):
    """`clock`: seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = Lock()
        self._told: dict[tuple[int, str], _Told] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        about = record.levelno, _WHO.sub("", without_counts(said))
        with self._lock:
            known, now = self._told.get(about), self._clock()
            if known is not None and now - known.at < AGAIN_S:
                known.since += 1
                return False
            while len(self._told) >= _MOST:
                del self._told[next(iter(self._told))]
            self._told[about] = _Told(now)
        if known is not None and known.since:
            record.msg, record.args = f"{said} (said {known.since} times more since it was told last)", ()
        return True


def without_counts(said: str) -> str:
    """What the client says, but for how long and how often that was so."""
    return _HOW_OFTEN.sub("", said)


def client_log() -> logging.Logger:
    """Where every client of ours is to speak."""
    log = logging.getLogger("wavestitch.kafka")
    if not any(isinstance(one, SaidOnce) for one in log.filters):
        log.addFilter(SaidOnce())
    return log
