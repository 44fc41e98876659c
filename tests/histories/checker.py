"""One analysis of a history: every anomaly, by kind, with ids and offsets. Shares no code with the product.

Rests on the contract of a chunk as `tests.domain.oracle` reads it, and on docs/design.md. "Not yet seen" is not "lost":
a record that no head has passed counts as lost only once `Quiet` says that the last undisturbed runs are through.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.histories.anomaly import Anomaly
from tests.histories.approval_rules import ApprovalRules
from tests.histories.case import BY_THE_THOUSAND, Case, Rule
from tests.histories.count_rules import CountRules
from tests.histories.decided_rules import DecidedRules
from tests.histories.events import Event
from tests.histories.first_head_rules import FirstHeadRules
from tests.histories.gate_rules import GateRules
from tests.histories.gone_rules import GoneRules
from tests.histories.group_rules import GroupRules
from tests.histories.head_rules import HeadRules
from tests.histories.held_rules import HeldRules
from tests.histories.interval_rules import IntervalRules
from tests.histories.maintenance_rules import MaintenanceRules
from tests.histories.missing_rules import MissingRules
from tests.histories.named_rules import NamedRules
from tests.histories.offset_rules import OffsetRules
from tests.histories.promotion_rules import PromotionRules
from tests.histories.reading_rules import ReadingRules
from tests.histories.rewind_rules import RewindRules
from tests.histories.row_rules import RowRules
from tests.histories.run_rules import RunRules
from tests.histories.undo_rules import UndoRules
from tests.histories.verify_rules import VerifyRules
from tests.histories.watermark_rules import WatermarkRules

RULES: tuple[type[Rule], ...] = (
    RunRules,
    ReadingRules,
    GroupRules,
    HeadRules,
    RewindRules,
    FirstHeadRules,
    OffsetRules,
    MissingRules,
    GateRules,
    UndoRules,
    ApprovalRules,
    PromotionRules,
    IntervalRules,
    GoneRules,
    NamedRules,
    VerifyRules,
    RowRules,
    HeldRules,
    DecidedRules,
    MaintenanceRules,
    WatermarkRules,
    CountRules,
)
"""The last one asks whether another one has found anything lost."""


def analyse(history: Iterable[Event]) -> list[Anomaly]:
    """All anomalies, in the order in which they show."""
    case = Case()
    rules = [rule(case) for rule in RULES]
    look = [rule for rule in rules if type(rule).first_look is not Rule.first_look]
    hear: dict[type, list[Rule]] = {kind: [r for r in rules if kind in r.hears] for kind in BY_THE_THOUSAND}
    for event in history:
        case.at += 1
        before = case.ledger.heads[-1] if case.ledger.heads else None
        if type(event) not in hear:
            for rule in look:
                rule.first_look(event)
        case.take(event)
        for rule in hear.get(type(event), rules):
            rule.take(event, before)
    case.at += 1
    for rule in rules:
        rule.close()
    return sorted(case.found, key=lambda a: a.event)
