"""Every parser of what others write, each with its target."""

from __future__ import annotations

from tests.fuzz import (
    chunk_targets,
    file_targets,
    gate_targets,
    kafka_targets,
    record_targets,
    secret_targets,
    text_targets,
    xcom_targets,
)
from tests.fuzz.target import Target

TARGETS: dict[str, Target] = {
    target.name: target
    for module in (
        chunk_targets,
        text_targets,
        gate_targets,
        record_targets,
        kafka_targets,
        file_targets,
        secret_targets,
        xcom_targets,
    )
    for target in module.TARGETS
}
