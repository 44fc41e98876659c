"""What the id of a plan looks like: half of a digest, in hex. It becomes a part of paths and keys, so it is asked
wherever one comes from elsewhere. Pure.
"""

from __future__ import annotations

import re
from typing import TypeGuard

_PLAN_ID = re.compile(r"[0-9a-f]{32}")


def is_plan_id(found: object) -> TypeGuard[str]:
    return isinstance(found, str) and _PLAN_ID.fullmatch(found) is not None
