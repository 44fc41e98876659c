"""What is kept of a definition that was compared, where not all of it can be: the changes come first."""

from __future__ import annotations

from tests.builders.ranges import span
from wavestitch.batch.compare import DefinitionCompared, few_changes
from wavestitch.contracts.definition_change import Change, Changed, counts_of_changes

KINDS = (Change.GONE, Change.SAME, Change.DIFFERS, Change.OUTSIDE, Change.NEWLY_FAILING, Change.NEWLY_PUBLISHED)


def compared() -> DefinitionCompared:
    waveforms = tuple(Changed(f"w{n}", kind) for n, kind in enumerate(KINDS))
    some = tuple(span(p, 0, 1) for p in range(3))
    counts = counts_of_changes(waveforms)
    return DefinitionCompared("ecg", 1, 2, (), some, some, some, counts, waveforms, remarks=("a", "b", "c"))


def test_the_changes_come_first_each_kind_in_the_order_of_waveforms_and_none_that_is_the_same() -> None:
    found = few_changes(compared(), waveforms=5, ranges=3)
    assert [one.waveform_id for one in found.waveforms] == ["w2", "w4", "w5", "w0", "w3"]


def test_of_much_a_few_are_kept_and_the_counts_are_of_all() -> None:
    whole = compared()
    found = few_changes(whole, waveforms=2, ranges=1)
    assert [one.waveform_id for one in found.waveforms] == ["w2", "w4"]
    assert [len(some) for some in (found.read, found.lost, found.cut, found.remarks)] == [1, 1, 1, 1]
    assert found.counts == whole.counts
    assert found.counts["same"] == 1
