"""What stitching came to, waveform by waveform, without an object for each that came out well. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from wavestitch.contracts.chunk_table import TEXT
from wavestitch.contracts.fates import Stitched
from wavestitch.contracts.reasons import Reason

_WELL = Stitched(None, "")


class StitchedWaveforms(Mapping[str, Stitched]):
    """`good`: ids of those whose bytes are staged and proven."""

    def __init__(self, good: pa.Array, refused: Mapping[str, Stitched]) -> None:
        self.good = good
        self._refused = refused

    @classmethod
    def of(cls, rows: pa.Table) -> StitchedWaveforms:
        """`rows`: columns `waveform_id`, `reason` and `evidence` of `STITCHED`, each waveform once."""
        well = rows["reason"].is_null()
        columns = (rows.filter(pc.invert(well))[n].to_pylist() for n in ("waveform_id", "reason", "evidence"))
        refused = {i: Stitched(Reason(why), evidence or "") for i, why, evidence in zip(*columns, strict=True)}
        return cls(rows["waveform_id"].filter(well).cast(TEXT).combine_chunks(), refused)

    def __getitem__(self, waveform_id: str) -> Stitched:
        found = self._refused.get(waveform_id)
        if found is not None:
            return found
        if waveform_id in self._known:
            return _WELL
        raise KeyError(waveform_id)

    def __iter__(self) -> Iterator[str]:
        return chain(self.good.to_pylist(), self._refused)

    def __len__(self) -> int:
        return len(self.good) + len(self._refused)

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.good.to_pylist())
