"""What a batch leaves on disk when it ends in the middle: nothing torn under a final name, nothing hidden.

Looks at the files themselves, beside the tables.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from tests.builders.published_bytes import published_bytes
from tests.deployment_rig import STREAM
from tests.faults.broker_faults_oracle import judge
from tests.faults.fault_class import Counts
from tests.faults.local_faults_batch import Produced, open_deployment, rig_at
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.stream_state import load_state
from wavestitch.write_once import digest_file

_DIGEST = re.compile(r"-([0-9a-f]{32})\.(?:arrow|parquet)$|^receipt-u\d+-([0-9a-f]{32})\.json$")


def check_files(folder: Path, produced: Produced, *, tidy: bool) -> None:
    """Raises where something torn can be seen. `tidy`: the batch ended by itself and must have given its space back."""
    tables = open_deployment(folder).tables(STREAM)
    for waveform_id, samples in published_bytes(tables):
        assert produced.whole.get(waveform_id) == samples, f"{waveform_id} is published altered"
    for path in folder.rglob("*"):
        found = _DIGEST.search(path.name)
        if found and not path.name.startswith((".", "held-")):  # named after its coordinates
            digest = digest_file(path, large=path.name.startswith("slice-") or path.suffix == ".parquet")[1]
            assert digest in found.groups(), f"{path.name} has other bytes than its name says"
    hidden = [p.name for p in folder.rglob(".*.tmp")]
    if tidy:
        assert not hidden, f"the failed batch keeps disk space: {hidden}"
        _check_no_torn_data(folder)


def _check_no_torn_data(folder: Path) -> None:
    """Parquet files of held and history that are no whole files hold space and serve nobody."""
    for name in ("held", "batches"):
        for path in (folder / "warehouse" / STREAM / name).glob("data/**/*.parquet"):
            try:
                pq.read_metadata(path)
            except Exception as error:
                raise AssertionError(f"the failed batch leaves half a file, {name}/{path.name}: {error}") from error


def check_held(deployment: Deployment, produced: Produced) -> None:
    """What is held is exactly what cannot be published."""
    now = load_state(deployment.tables(STREAM), topic_id=produced.topic_id)
    published = {h.chunk.waveform_id for h in now.held} & set(produced.whole)
    assert not published, f"held, although whole: {published}"


def settle(folder: Path, produced: Produced, ends: tuple[str, ...]) -> Counts:
    """What the deployment came to in the end, against what was produced."""
    whole = rig_at(folder)
    counts = judge(
        whole, produced.records, produced.topic_id, versions={i: {samples} for i, samples in produced.whole.items()}
    )
    published = whole.published()
    assert published == produced.whole, f"published: {sorted(published)}, to be published: {sorted(produced.whole)}"
    check_held(open_deployment(folder), produced)
    return replace(counts, ends=ends)
