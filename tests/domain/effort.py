"""How much the property tests try: quick by default, `WAVESTITCH_DEEP=1` (or another factor of ten) for more."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

FACTOR = 20 * int(os.environ.get("WAVESTITCH_DEEP", "0") or 0) or 1


def effort(examples: int, *, steps: int = 50, shrink: bool = True, fixed: bool = False) -> settings:
    """Settings without deadlines. `fixed`: the same examples every time."""
    phases = [Phase.explicit, Phase.generate, *([Phase.reuse, Phase.shrink] if shrink else [])]
    return settings(
        max_examples=examples if fixed else examples * FACTOR,
        stateful_step_count=steps,
        deadline=None,
        derandomize=fixed,
        database=None if fixed else settings.default.database,
        phases=phases,
        suppress_health_check=list(HealthCheck),
        print_blob=not fixed,
        report_multiple_bugs=False,
    )
