"""What stitching came to, as columns, says what a dictionary of outcomes would."""

from __future__ import annotations

import pyarrow as pa
import pytest

from wavestitch.contracts.fates import Stitched
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.rows import STITCHED
from wavestitch.contracts.stitched_waveforms import StitchedWaveforms

ROWS = [
    {"waveform_id": "a"},
    {"waveform_id": "b", "reason": "misfit", "evidence": "too wide"},
    {"waveform_id": "c"},
    {"waveform_id": "d", "reason": "digest_mismatch"},
]
SAID = {
    "a": Stitched(None, ""),
    "b": Stitched(Reason.MISFIT, "too wide"),
    "c": Stitched(None, ""),
    "d": Stitched(Reason.DIGEST_MISMATCH, ""),
}


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], ROWS[1:2], []])
def test_it_is_the_dictionary_of_its_rows(rows: list[dict[str, str]]) -> None:
    table = pa.concat_tables([pa.Table.from_pylist([row], schema=STITCHED) for row in rows] or [STITCHED.empty_table()])
    found = StitchedWaveforms.of(table)
    wanted = {row["waveform_id"]: SAID[row["waveform_id"]] for row in rows}
    assert dict(found) == wanted
    assert len(found) == len(wanted)
    assert sorted(found.good.to_pylist()) == [i for i, s in wanted.items() if s.reason is None]
    assert found.get("nobody") is None
    with pytest.raises(KeyError):
        found["nobody"]
