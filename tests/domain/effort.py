"""How much the property tests try: quick by default, `WAVESTITCH_DEEP=1` (or another factor of ten) for more.

Quick is the same every time, so that a change is taken or not for what it does; what is tried beyond is new each time.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

FACTOR = 20 * int(os.environ.get("WAVESTITCH_DEEP", "0") or 0) or 1


def quick_is_the_same_each_time() -> None:
    """For all property tests that are imported afterwards; none has a deadline, since machines are shared."""
    if FACTOR == 1:
        settings.register_profile("quick", derandomize=True, database=None, print_blob=False, deadline=None)
        settings.load_profile("quick")
    else:
        settings.register_profile("deep", deadline=None, print_blob=True)
        settings.load_profile("deep")


def effort(examples: int, *, steps: int = 50, shrink: bool = True, fixed: bool = False) -> settings:
    """How much one test tries. `fixed`: the same examples, and as many, however much is to be tried."""
    wanted = {Phase.explicit, Phase.generate, *([Phase.reuse, Phase.shrink] if shrink else [])}
    phases = [phase for phase in settings().phases if phase in wanted]
    drawn = settings(
        max_examples=examples if fixed else examples * FACTOR,
        stateful_step_count=steps,
        deadline=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    return settings(drawn, derandomize=True, database=None, print_blob=False) if fixed else drawn
