"""Which steps of the model random histories take, from the command line: `python -m tests.histories.steps [HOW MANY]`.

Apart from what follows them, which real runs are followed with, too, and which knows of no play.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from tests.histories.random_histories import play_history
from tests.histories.tracing import STEPS, OffTrack, follow


def main(argv: Sequence[str]) -> int:
    steps: Counter[str] = Counter()
    most = int(argv[0]) if argv else 100
    for seed in range(most):
        try:
            steps += follow(play_history(seed)[0])
        except OffTrack as off:
            print(f"seed {seed}: {off}")
            return 1
    for name, count in sorted(steps.items()):
        print(f"{count:8} {name}")
    print(f"{most} histories; steps of the model that none of them took: {sorted(set(STEPS) - steps.keys()) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
