"""Which tests are about a module: those that take seconds in one process, the closest first.

What starts a broker, a Spark or a child that loads the product anew has no place here: a mutant lives in one process.
"""

from __future__ import annotations


def _unit(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/unit/test_{name}.py" for name in names)


def _domain(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/domain/test_{name}.py" for name in names)


_EXAMPLES = (*_unit("decide_examples"), *_domain("assemble_examples"))
_DECIDES = (*_EXAMPLES, *_unit("plain_waveforms", "seams", "assign_waveforms"), *_domain("sealed_repeats", "any_order"))
_POSITIONS = _unit("position", "versioned", "plan_and_receipt")
_VERIFIES = (*_unit("verification"), *_domain("verify_accounts", "verify_skipped"))

_CONTRACTS: dict[str, tuple[str, ...]] = {
    "offset_range": _unit("offset_range", "named_places", "start_index", "past_cost", "verification"),
    "holes": _unit("holes", "record_runs", "plan_and_receipt"),
    "record_batches": _unit("raw_batches", "holes"),
    "stop_rule": _unit("stop_rule", "record_runs"),
    "position": _POSITIONS,
    "next_head": _POSITIONS + _EXAMPLES,
    "protocol": (*_POSITIONS, *_domain("protocol_model", "partial_positions", "lost_catalog")),
    "start_index": _unit("start_index"),
    "start_blocks": _unit("start_index"),
    "start_times": (*_unit("start_index", "chunk_header"), *_EXAMPLES),
    "chunk_header": _unit("chunk_header", "chunk_header_metadata", "chunk_proof", "chunking", "raw_headers"),
    "chunk_proof": _unit("chunk_proof", "chunk_header"),
    "completeness": (*_unit("completeness"), *_DECIDES),
    "copies": _DECIDES,
    "disagreement": _DECIDES,
    "assembly": _DECIDES,
    "pending_decision": _DECIDES,
    "decided": _DECIDES,
    "decision": _DECIDES,
    "plain_waveforms": _DECIDES,
    "whole_waveforms": _DECIDES,
    "seams": _unit("seams"),
    "row_check": _unit("row_check", "row_proof"),
    "row_proof": _unit("row_proof", "row_check"),
    "verification": _VERIFIES,
    "record_accounts": _VERIFIES,
    "promotion": _domain("promote"),
    "held": _domain("held_decisions", "held_bounds", "clock_was_ahead"),
    "receipt": _unit("plan_and_receipt", "landing"),
}

TARGETS: dict[str, tuple[str, ...]] = {f"wavestitch/contracts/{name}.py": tests for name, tests in _CONTRACTS.items()}
"""By the module's file."""
