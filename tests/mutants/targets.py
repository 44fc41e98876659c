"""Which tests are about a module: those that take seconds in one process, the closest first.

What starts a broker, a Spark or a child that loads the product anew has no place here: a mutant lives in one process.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def _unit(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/unit/test_{name}.py" for name in names)


def _domain(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/domain/test_{name}.py" for name in names)


_EXAMPLES = (*_unit("decide_examples"), *_domain("assemble_examples"))
_DECIDES = (*_EXAMPLES, *_unit("plain_waveforms", "seams", "assign_waveforms"), *_domain("sealed_repeats", "counts"))
_POSITIONS = _unit("position", "versioned", "plan_and_receipt")
_HEADS = _domain("partial_positions", "lost_catalog", "expired_head")
_VERIFIES = (*_unit("verification", "compared", "record_accounts"), *_domain("verify_accounts", "verify_skipped"))
_BATCHES = _domain("batch_steps", "planning", "closed_gate", "counts", "junk")
_REWINDS = _domain("rewind_preview", "cut_log", "undo", "closed_gate")

_CONTRACTS: dict[str, tuple[str, ...]] = {
    "offset_range": _unit("offset_range", "named_places", "start_index", "past_cost", "verification"),
    "holes": _unit("holes", "record_columns", "plan_and_receipt"),
    "position": _POSITIONS + _HEADS,
    "protocol": _unit("protocol_examples") + _POSITIONS + _HEADS,
    "next_head": (*_unit("next_head"), *_EXAMPLES),
    "decided": _DECIDES,
    "assembly": _DECIDES,
    "pending_decision": (
        *_DECIDES,
        *_domain("held_decisions", "held_bounds", "held_lessons", "held_without_bytes", "promote"),
    ),
    "plain_waveforms": _DECIDES,
    "record_columns": _unit("record_columns"),
    "chunk_columns": _unit("record_columns"),
    "chunk_header": _unit(
        "chunk_header", "chunk_header_bounds", "chunk_header_metadata", "chunk_proof", "chunking", "raw_headers"
    ),
    "promotion": _domain("promote"),
    "start_index": _unit("start_index"),
    "verification": _VERIFIES,
    "record_accounts": _VERIFIES,
    "record_batches": _unit("record_batches", "raw_batches", "holes"),
    "stop_rule": _unit("stop_rule", "record_columns"),
    "start_blocks": _unit("start_index"),
    "start_times": (*_unit("start_index", "chunk_header"), *_EXAMPLES),
    "chunk_proof": _unit("chunk_proof", "chunk_header"),
    "completeness": (*_unit("completeness"), *_DECIDES),
    "copies": _unit("copies", "seams"),
    "disagreement": _DECIDES,
    "decision": _DECIDES,
    "whole_waveforms": _DECIDES,
    "seams": _unit("seams"),
    "row_check": _unit("row_check", "row_proof"),
    "row_proof": _unit("row_proof", "row_check"),
    "held": _domain("held_decisions", "held_bounds", "clock_was_ahead"),
    "receipt": _unit("plan_and_receipt", "landing"),
}

_BATCH: dict[str, tuple[str, ...]] = {
    "reconciled_head": _BATCHES + _HEADS,
    "rewind": _REWINDS + _HEADS,
    "rewind_target": _REWINDS + _HEADS,
    "cut_log": _domain("cut_log"),
    "publish": (*_BATCHES, *_HEADS, *_domain("held_bounds", "held_decisions", "promote")),
    "commit_offsets": (*_HEADS, *_BATCHES, *_domain("group_is_written_last")),
    "plan": _BATCHES + _HEADS,
    "survey": _BATCHES + _HEADS,
}

_HELD_TABLES = _domain("tables_held", "held_files", "held_removal", "held_compaction", "held_from_before")
_TABLES = _domain("tables", "tables_published")
_STITCHES = (*_domain("stitching"), *_unit("assign_waveforms", "stitched_rows"))
_LANDS = _unit("landing", "record_columns", "careful_scan")

_IN_TABLES: dict[str, tuple[str, ...]] = {
    "commit/one_commit": _domain("one_commit", "catalog_errors", "postgresql_catalog"),
    "commit/own_columns": _domain("changed_columns"),
    "commit/own_files": _domain("own_place"),
    "commit/own_partitions": _domain("changed_partitions"),
    "commit/own_place": _domain("own_place"),
    "commit/own_properties": _domain("live_edits"),
    "commit/own_versions": _domain("own_versions"),
    "commit/samples_column": _domain("samples_column"),
    "commit/staged_files": _domain("staged_files", "warehouse_in_a_store"),
    "commit/stored_table": _TABLES,
    "commit/table_layout": _TABLES,
    "held/held_files": _HELD_TABLES,
    "held/held_left": (*_domain("rebuilt_held"), *_HELD_TABLES),
    "held/held_look": _HELD_TABLES,
    "held/held_payloads": _HELD_TABLES,
    "held/held_removal": _domain("held_removal"),
    "held/held_rows": _HELD_TABLES,
    "held/held_staging": _HELD_TABLES,
    "held/held_values": _HELD_TABLES,
    "history/batch_history": _domain("damaged_history", "whole_history"),
    "history/heads": _TABLES,
    "lookup/id_index": _domain("id_index"),
    "lookup/id_store": _domain("id_index"),
}

_MAINTAINS: dict[str, tuple[str, ...]] = {
    "what_goes": (*_unit("what_goes"), *_domain("maintain_decisions")),
    "leftovers": _domain("maintain_leftovers", "maintain_failures"),
    "batch_state": _domain("maintain_decisions", "maintain"),
    "landing_folders": _domain("stages_of_maintenance", "maintain"),
    "doubts": _domain("two_catalogs", "maintain"),
    "compaction": _domain("maintain_compaction"),
    "actions": _domain("maintain", "maintain_decisions", "stages_of_maintenance"),
}

_OF_SPARK = ("assignment", "gathering", "stitched_rows", "outcome", "landed_payload")

_CONSUMERS: dict[str, tuple[str, ...]] = {
    "range_scan": _unit("record_sink", "complaints", "careful_scan"),
    "record_sink": _unit("record_columns", "record_sink", "careful_scan", "landing"),
    "batch_scan": _unit("record_columns", "batch_scan", "careful_scan", "raw_batches", "cut_while_read"),
    "byte_budget": _unit("record_columns", "careful_scan"),
    "group_state": _unit("group_state"),
    "landing": _LANDS,
    "landed_file": _LANDS,
    "landed_rows": _LANDS,
    "pending_rows": _LANDS,
    "failed_reading": _domain("way_past", "cut_log"),
}

_TABLE: dict[str, tuple[str, ...]] = {
    **{f"wavestitch/contracts/{name}.py": tests for name, tests in _CONTRACTS.items()},
    **{f"wavestitch/batch/{name}.py": tests for name, tests in _BATCH.items()},
    **{f"consumers/{name}.py": tests for name, tests in _CONSUMERS.items()},
    **{f"wavestitch/maintain/{name}.py": tests for name, tests in _MAINTAINS.items()},
    **{f"wavestitch/tables/{name}.py": tests for name, tests in _IN_TABLES.items()},
    **{f"spark_apps/{name}.py": _STITCHES for name in _OF_SPARK},
}


@cache
def _importers() -> dict[str, tuple[str, ...]]:
    """By the module's file, which unit tests import from it by name."""
    found: dict[str, tuple[str, ...]] = {}
    for path in sorted((_ROOT / "tests" / "unit").glob("test_*.py")):
        for name in set(re.findall(r"^from ([\w.]+) import", path.read_text(encoding="utf-8"), re.MULTILINE)):
            module = f"{name.replace('.', '/')}.py"
            found[module] = (*found.get(module, ()), str(path.relative_to(_ROOT)))
    return found


def _histories(module: str) -> tuple[str, ...]:
    """What they do on purpose, for what decides: they judge by the log and the tables alone."""
    if not module.startswith(("wavestitch/contracts/", "wavestitch/batch/")):
        return ()
    return ("tests/histories/test_histories.py::test_what_is_done_on_purpose_shows_nothing_where_the_product_is_sound",)


def _about(module: str, tests: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*tests, *_importers().get(module, ()), *_histories(module)]))


TARGETS = {module: _about(module, tests) for module, tests in _TABLE.items()}
"""By the module's file: the table's tests, unit tests that import from it by name, and histories."""
