"""What was previewed, and that somebody said no to it, in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fakes.faults import Edge
from wavestitch.contracts.errors import BadInput, Transient
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.preview_answer import Rejected
from wavestitch.contracts.quantities import Seconds
from wavestitch.contracts.rewind_preview import RewindPreview


@dataclass
class KeptPreviews(Edge):
    previews: dict[str, RewindPreview] = field(default_factory=dict, kw_only=True)
    decisions: dict[str, Plan] = field(default_factory=dict, kw_only=True)
    rejections: dict[str, Rejected] = field(default_factory=dict, kw_only=True)


@dataclass(frozen=True)
class FakePreviews:
    """The part of `Edges` that people's previews are kept by."""

    bench: KeptPreviews

    def keep_preview(self, preview: RewindPreview) -> None:
        with self.bench.act("folder.preview", error=Transient):
            self.bench.previews[preview.preview_id] = preview

    def preview(self, preview_id: str) -> RewindPreview:
        if preview_id not in self.bench.previews:
            raise BadInput(f"no preview {preview_id}")
        return self.bench.previews[preview_id]

    def keep_decision(self, plan: Plan) -> None:
        with self.bench.act("folder.decision", error=Transient):
            self.bench.decisions[plan.plan_id] = plan

    def decision(self, plan_id: str) -> Plan:
        if plan_id not in self.bench.decisions:
            raise BadInput(f"no decision {plan_id}")
        return self.bench.decisions[plan_id]

    @property
    def previews_hold(self) -> Seconds:
        return Seconds(7 * 86400)

    def reject(self, preview_id: str, said: Rejected) -> None:
        with self.bench.act("folder.rejection", error=Transient):
            self.bench.rejections.setdefault(preview_id, said)

    def rejected(self, preview_id: str) -> Rejected | None:
        with self.bench.act("folder.rejected", error=Transient):
            return self.bench.rejections.get(preview_id)
