"""Hostile files between the steps: landing files and receipts that are damaged, exchanged, or lie consistently.

A kind does something to a landed batch (a `Bed`); loading the batch must then end with the error that it names.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import xxhash

from consumers.landed_file import besides_payload, open_landing
from wavestitch.contracts.errors import Altered, BadInput, DataLost, WavestitchError
from wavestitch.contracts.plan import PLAN_FORMAT
from wavestitch.contracts.rows import LANDING
from wavestitch.write_once import digest_bytes

Json = dict[str, Any]


@dataclass
class Bed:
    """A landed batch: its folder, the names of its receipts, and the folder and receipts of another plan."""

    folder: Path
    receipts: list[str]
    other: Path
    other_receipts: list[str]

    @property
    def landing(self) -> Path:
        return sorted(self.folder.glob("slice-*.arrow"))[0]

    def damage(self, change: Callable[[bytearray], bytes | bytearray]) -> None:
        self.landing.write_bytes(change(bytearray(self.landing.read_bytes())))

    def rewrite(self, change: Callable[[pa.Table], pa.Table]) -> None:
        """Another Arrow file under the old name."""
        changed = change(open_landing(self.landing))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, changed.schema) as out:
            out.write_table(changed)
        self.landing.write_bytes(sink.getvalue().to_pybytes())

    def say(self, change: Callable[[Json], Any]) -> None:
        """Another receipt, under the name that its content gives: a lie that is consistent."""
        found = json.loads((self.folder / self.receipts[0]).read_text())
        changed = change(found)
        self.put(json.dumps(found if changed is None else changed))

    def put(self, text: str) -> None:
        name = f"receipt-u000-{digest_bytes(text.encode())}.json"
        (self.folder / name).write_bytes(text.encode())
        self.receipts[0] = name

    def reseal(self) -> None:
        """After `rewrite` or `damage`: name and receipt are made to agree with the file as it is now."""
        content = self.landing.read_bytes()
        digest = xxhash.xxh3_128_hexdigest(content)
        name = "-".join([*self.landing.stem.split("-")[:4], digest]) + ".arrow"
        self.landing.rename(self.folder / name)

        def agree(found: Json) -> None:
            found["slices"][0] |= {"file": name, "digest": digest, "file_bytes": len(content)}
            with suppress(WavestitchError):  # what is no landing file has no index
                seen = hashlib.sha256()
                for batch in open_landing(self.folder / name).to_batches():
                    seen.update(besides_payload(batch))
                found["slices"][0]["index_digest"] = seen.hexdigest()

        self.say(agree)


@dataclass(frozen=True, slots=True)
class FileKind:
    """`error`, `says`: how loading must end. `at`: 'load', or 'stitch' where the file is damaged after loading."""

    name: str
    wrong: str
    do: Callable[[Bed], Any]
    error: type[WavestitchError]
    says: str


def file_kinds() -> list[FileKind]:
    return [*_landing_bytes(), *_landing_places(), *_consistent_lies(), *_receipt_texts(), *_receipt_names(), *_plans()]


def _flip(part: float) -> Callable[[Bed], None]:
    def flip(content: bytearray) -> bytearray:
        content[min(len(content) - 1, int(len(content) * part))] ^= 0x10
        return content

    return lambda bed: bed.damage(flip)


def _landing_bytes() -> list[FileKind]:
    def damaged(name: str, wrong: str, do: Callable[[Bed], Any], says: str = "written were") -> FileKind:
        return FileKind(f"a landing file {name}", wrong, do, Altered, says)

    def flipped(where: str, part: float, says: str) -> FileKind:
        return damaged(f"with a flipped bit in the {where}", "not what was written", _flip(part), says)

    no_file, other_index, other_payload = "no whole landing file", "written was", "was landed with CRC"
    return [
        flipped("first batch's header", 0.3, no_file),
        flipped("middle", 0.5, other_index),
        flipped("last bytes", 0.9, no_file),
        flipped("end magic", 1.0, no_file),
        damaged("with a flipped bit in a payload", "not what was written", _flip_a_payload, other_payload),
        damaged("with payloads moved by a byte", "not what was written", _move_payloads, other_payload),
        damaged("cut by a byte", "not whole", lambda b: b.damage(lambda c: c[:-1])),
        damaged("cut in half", "not whole", lambda b: b.damage(lambda c: c[: len(c) // 2])),
        damaged("cut to its magic", "not whole", lambda b: b.damage(lambda c: c[:8])),
        damaged("of no bytes", "not whole", lambda b: b.damage(lambda _: b"")),
        damaged("with bytes behind it", "more than was written", lambda b: b.damage(lambda c: c + b"x")),
        damaged("twice in a row", "more than was written", lambda b: b.damage(lambda c: c + c)),
        damaged("of zeros", "the disk lost it", lambda b: b.damage(lambda c: bytes(len(c))), no_file),
        damaged("with a row more", "invented", lambda b: b.rewrite(lambda t: pa.concat_tables([t, t.slice(0, 1)]))),
        damaged("with a row less", "lost", lambda b: b.rewrite(lambda t: t.slice(1))),
        damaged("with its rows turned round", "reordered", lambda b: b.rewrite(_turned), other_index),
    ]


def _flip_a_payload(bed: Bed) -> None:
    payload = open_landing(bed.landing)["payload"][3].as_py()
    changed = bytes([payload[0] ^ 1]) + payload[1:]
    bed.damage(lambda content: content.replace(payload, changed, 1))


def _move_payloads(bed: Bed) -> None:
    payload = open_landing(bed.landing)["payload"][0].as_py()
    bed.damage(lambda content: content.replace(payload, payload[1:] + payload[:1]))


def _turned(table: pa.Table) -> pa.Table:
    return table.take(list(reversed(range(table.num_rows))))


def _landing_places() -> list[FileKind]:
    def linked(bed: Bed) -> None:
        elsewhere = bed.folder.parent / "elsewhere.arrow"
        bed.landing.rename(elsewhere)
        (bed.folder / _file_of(bed)).symlink_to(elsewhere)

    def piped(bed: Bed) -> None:
        path = bed.landing
        path.unlink()
        os.mkfifo(path)

    def foldered(bed: Bed) -> None:
        path = bed.landing
        path.unlink()
        path.mkdir()

    def exchanged(bed: Bed) -> None:
        mine, theirs = bed.landing, sorted(bed.other.glob("slice-*.arrow"))[0]
        content = mine.read_bytes(), theirs.read_bytes()
        mine.write_bytes(content[1])
        theirs.write_bytes(content[0])

    def among_themselves(bed: Bed) -> None:
        one, two = sorted(bed.folder.glob("slice-*.arrow"))[:2]
        content = one.read_bytes(), two.read_bytes()
        one.write_bytes(content[1])
        two.write_bytes(content[0])

    return [
        FileKind("no landing file", "deleted", lambda b: b.landing.unlink(), Altered, "is gone"),
        FileKind("a link in its place", "it leads out of the folder", linked, Altered, "no plain file"),
        FileKind("a pipe in its place", "reading it would never end", piped, Altered, "no plain file"),
        FileKind("a folder in its place", "no file", foldered, Altered, "no plain file"),
        FileKind("landing files exchanged between two plans", "another plan's", exchanged, Altered, "written were"),
        FileKind("landing files exchanged in one plan", "another slice's", among_themselves, Altered, "written was"),
    ]


def _file_of(bed: Bed) -> str:
    return str(json.loads((bed.folder / bed.receipts[0]).read_text())["slices"][0]["file"])


def _consistent_lies() -> list[FileKind]:
    """Files that are no landing files, or of other records, with receipts that agree with them to the byte."""

    def rewritten(change: Callable[[pa.Table], pa.Table], records: int = 0) -> Callable[[Bed], None]:
        def do(bed: Bed) -> None:
            bed.rewrite(change)
            bed.reseal()

        return do

    def damaged(change: Callable[[bytearray], bytes | bytearray]) -> Callable[[Bed], None]:
        def do(bed: Bed) -> None:
            bed.damage(change)
            bed.reseal()

        return do

    def lies(name: str, do: Callable[[Bed], None], says: str) -> FileKind:
        return FileKind(f"a consistent receipt for {name}", "the digest alone proves nothing", do, Altered, says)

    def moved(table: pa.Table) -> pa.Table:
        return table.set_column(1, LANDING.field(1), pa.array([n + 10**6 for n in range(len(table))], pa.int64()))

    def elsewhere(table: pa.Table) -> pa.Table:
        return table.set_column(0, LANDING.field(0), pa.array([9] * len(table), pa.int32()))

    def repeated(table: pa.Table) -> pa.Table:
        return table.take([0] * len(table))

    def astray(table: pa.Table) -> pa.Table:
        at = LANDING.get_field_index("meta_row")
        return table.set_column(at, LANDING.field(at), pa.array([1 << 30] * len(table), pa.int32()))

    def typed(table: pa.Table) -> pa.Table:
        return table.set_column(4, "seq", table.column("seq").cast(pa.int64()))

    no_format: dict[str, str] = {}
    return [
        lies("text", damaged(lambda _: b"offset,payload\n" * 100), "no whole landing file"),
        lies("no bytes", damaged(lambda _: b""), "no whole landing file"),
        lies("half a file", damaged(lambda c: c[: len(c) // 2]), "no whole landing file"),
        lies("metadata that stand nowhere", rewritten(astray), "where there are none"),
        lies("a file without a column", rewritten(lambda t: t.drop_columns(["crc"])), "columns"),
        lies("a file with a column more", rewritten(lambda t: t.append_column("x", t.column("crc"))), "columns"),
        lies("a file with a wider type", rewritten(typed), "columns"),
        lies("a file with columns in another order", rewritten(lambda t: t.select(t.column_names[::-1])), "columns"),
        lies("a file without format", rewritten(lambda t: t.replace_schema_metadata(no_format)), "landing format"),
        lies(
            "a file of another format",
            rewritten(lambda t: t.replace_schema_metadata({"wavestitch.landing-format": "1"})),
            "landing format",
        ),
        lies("a row less", rewritten(lambda t: t.slice(1)), "rows that are not"),
        lies("a row more", rewritten(lambda t: pa.concat_tables([t, t.slice(0, 1)])), "rows that are not"),
        lies("no rows", rewritten(lambda t: t.slice(0, 0)), "rows that are not"),
        lies("rows turned round", rewritten(_turned), "rows that are not"),
        lies("one row again and again", rewritten(repeated), "rows that are not"),
        lies("rows of other offsets", rewritten(moved), "rows that are not"),
        lies("rows of another partition", rewritten(elsewhere), "rows that are not"),
    ]


def _receipt_texts() -> list[FileKind]:
    def text(name: str, said: str, says: str = "is not JSON") -> FileKind:
        return FileKind(f"a receipt that is {name}", "no receipt", lambda b: b.put(said), BadInput, says)

    def slice_says(name: str, says: str, **changes: Any) -> FileKind:
        def do(bed: Bed) -> None:
            bed.say(lambda found: found["slices"][0].update(changes))

        return FileKind(f"a slice with {name}", "no reader writes this", do, BadInput, says)

    def says(name: str, change: Callable[[Json], Any], error: type[WavestitchError], sentence: str) -> FileKind:
        return FileKind(f"a receipt {name}", "no reader writes this", lambda b: b.say(change), error, sentence)

    kind, number, file = "another kind", "less than 0", "not the name of its landing file"
    return [
        text("nothing", ""),
        text("no JSON", "{"),
        text("8,000 brackets", "[" * 8000),
        text("a list", "[]", "no JSON object"),
        text("null", "null", "no JSON object"),
        says("of format 1", lambda f: f.update(format=1), BadInput, "has format 1"),
        says("with slices that are null", lambda f: {**f, "slices": None}, BadInput, kind),
        says("with slices that are a text", lambda f: f.update(slices="all"), BadInput, kind),
        says("with slices that are numbers", lambda f: f.update(slices=[1, 2]), BadInput, kind),
        says("with a key more", lambda f: f.update(more=1), BadInput, "an unknown field: more"),
        says("with a plan that is a list", lambda f: f.update(plan_id=["x"]), BadInput, kind),
        says("with seconds that are a text", lambda f: f.update(seconds="1"), BadInput, kind),
        says("of another plan", lambda f: f.update(plan_id="0" * 32), BadInput, "is of plan"),
        says("that covers nothing", lambda f: f.update(slices=[]), DataLost, "have no receipt"),
        says("that covers all twice", lambda f: f.update(slices=f["slices"] * 2), DataLost, "have no receipt"),
        slice_says("a negative start", number, start=-1),
        slice_says("a start that is true", kind, start=True),
        slice_says("a count that is a float", kind, records=1.0),
        slice_says("a negative count", number, records=-5),
        slice_says("a partition that is a text", kind, partition="0"),
        slice_says("a record time that is a text", kind, seen_ms="now"),
        slice_says("holes that are none", kind, holes=7),
        slice_says("holes of one number", "lacks a field", holes=[[1]]),
        slice_says("a hole outside of it", "holes", holes=[[10**6, 10**6 + 1, "control"]]),
        slice_says("a hole that runs backwards", "holes", holes=[[5, 1, "control"]]),
        slice_says("the same hole twice", "holes", holes=[[1, 2, "control"], [1, 2, "control"]]),
        slice_says("a hole that nothing proves", "lacks a field", holes=[[1, 2]]),
        slice_says("a hole with a proof that does not exist", kind, holes=[[1, 2, "inferred"]]),
        slice_says("a file that is a path upwards", file, file="../../etc/passwd"),
        slice_says("a file that is an absolute path", file, file="/etc/passwd"),
        slice_says("a file with a NUL", file, file="slice\0.arrow"),
        slice_says("a file that is a number", kind, file=7),
        slice_says("a file of the right name in another folder", file, file="../x/slice-p0-0-1-" + "0" * 32 + ".arrow"),
        slice_says("a digest that is a path", file, digest="../" * 10 + "xx"),
        slice_says("no file, but records", file, file=None),
    ]


def _receipt_names() -> list[FileKind]:
    """The name of a receipt comes from the step before, by way of Airflow: it is a claim, too."""

    def named(name: str, said: str) -> FileKind:
        def do(bed: Bed) -> None:
            bed.receipts[0] = said

        return FileKind(f"a receipt's name that is {name}", "no file of this folder", do, BadInput, "not the name")

    def altered(bed: Bed) -> None:
        path = bed.folder / bed.receipts[0]
        path.write_text(path.read_text().replace('"unit": 0', '"unit": 1'))

    def linked(bed: Bed) -> None:
        path = bed.folder / bed.receipts[0]
        elsewhere = path.rename(bed.folder.parent / "elsewhere.json")
        path.symlink_to(elsewhere)

    def others(bed: Bed) -> None:
        for name in bed.other_receipts:
            (bed.folder / name).write_bytes((bed.other / name).read_bytes())
        bed.receipts[:] = bed.other_receipts

    return [
        named("a path upwards", "../receipt-u000-" + "0" * 32 + ".json"),
        named("an absolute path", "/etc/hostname"),
        named("the plan", "plan.json"),
        named("nothing", ""),
        named("a text with a NUL", "receipt-u000-" + "0" * 31 + "\0.json"),
        named("one with a newline behind", "receipt-u000-" + "0" * 32 + ".json\n"),
        FileKind("a receipt that was changed", "its name says so", altered, Altered, "not as it was written"),
        FileKind("a link in a receipt's place", "it leads out of the folder", linked, Altered, "no plain file"),
        FileKind("a receipt that is gone", "deleted", lambda b: (b.folder / b.receipts[0]).unlink(), Altered, "gone"),
        FileKind("the receipts of another plan", "other offsets were read", others, BadInput, "is of plan"),
    ]


def _plans() -> list[FileKind]:
    def text(bed: Bed, change: Callable[[str], str]) -> None:
        path = bed.folder / "plan.json"
        path.write_text(change(path.read_text()))

    def plan(name: str, change: Callable[[str], str], says: str) -> FileKind:
        return FileKind(f"a plan that is {name}", "not the batch's plan", lambda b: text(b, change), BadInput, says)

    def newer(said: str) -> str:
        return said.replace(f'"format": {PLAN_FORMAT}', f'"format": {PLAN_FORMAT + 1}')

    def exchanged(bed: Bed) -> None:
        (bed.folder / "plan.json").write_bytes((bed.other / "plan.json").read_bytes())

    return [
        plan("no JSON", lambda t: t[:-5], "is not JSON"),
        plan("a list", lambda _: "[]", "no JSON object"),
        plan("8,000 brackets", lambda _: "[" * 8000, "is not JSON"),
        plan("of another format", newer, "by a newer Wavestitch"),
        plan("without ranges", lambda t: t.replace('"ranges"', '"rangs"'), "a field: ran"),
        plan("changed in one number", lambda t: t.replace('"generation": ', '"generation": 1'), "was changed"),
        plan("of another kind", lambda t: t.replace('"kind": "ingest"', '"kind": "pickle"'), "another kind: kind"),
        FileKind("a plan in another plan's folder", "exchanged", exchanged, Altered, "put there by somebody else"),
    ]
