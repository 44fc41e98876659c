"""How many kinds of hostile input there are, and how many of them end as they must: for a report.

`python -m tests.hostile.count` runs parser, files, definitions and a whole batch in this process, on a log in memory.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tests.hostile.corpus import record_kinds
from tests.hostile.file_kinds import FileKind, file_kinds
from tests.hostile.landed_plans import land_two_plans, load_bed, make_bed
from tests.hostile.outcome import problems
from tests.hostile.refusing import value_or_refusal
from tests.hostile.sending import carry_corpus
from tests.hostile.yaml_kinds import YamlKind, yaml_kinds
from wavestitch.contracts.chunk_header import Chunk, parse_chunk
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.stream import Stream, parse_stream


def contained() -> tuple[int, int]:
    """(kinds, contained): kinds of records, of files and of stream definitions, and those that ended as they must."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        landing = land_two_plans(folder / "files")
        ends = [*_records(folder / "deployment"), *(_file(kind, landing, folder / "bed") for kind in file_kinds())]
    ends += map(_definition, yaml_kinds())
    return len(ends), sum(ends)


def _records(deployment: Path) -> list[bool]:
    carried = carry_corpus(deployment)
    wrong = set(problems(carried.sent, carried.held))
    published = carried.whole.published()
    found = []
    for kind in record_kinds():
        parsed = [parse_chunk(r.key, r.headers, r.value) for r in kind.records]
        answered = [None if isinstance(p, Chunk) else p.reason for p in parsed] == kind.parsed()
        whole = {i: published.get(i) for i in kind.samples} == dict(kind.samples)
        found.append(answered and whole and not wrong & {kind.name, f"probe behind {kind.name}"})
    return found


def _file(kind: FileKind, landing: Path, folder: Path) -> bool:
    bed = make_bed(landing, folder)
    kind.do(bed)
    end = value_or_refusal(lambda: load_bed(bed))
    shutil.rmtree(folder)
    return isinstance(end, kind.error) and kind.says in end.message


def _definition(kind: YamlKind) -> bool:
    end = value_or_refusal(lambda: parse_stream(kind.text, name=kind.stream), allowed=BadInput)
    if kind.says is None:
        return isinstance(end, Stream)
    return isinstance(end, BadInput) and kind.says in end.message


if __name__ == "__main__":
    print("{} kinds of hostile input, {} contained".format(*contained()))
