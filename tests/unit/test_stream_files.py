"""Whoever may write the files of streams can make nobody read without end, or read what is not theirs."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from wavestitch import stream_files
from wavestitch.contracts.errors import BadInput, Transient
from wavestitch.contracts.stream import Stream, ingest_dag_id, name_in_airflow
from wavestitch.stream_files import (
    BYTES_EACH,
    MOST_BYTES,
    SETTLED_SECONDS,
    find_streams,
    read_settled_stream,
    read_stream,
    stream_names,
)

GOOD = "topic: t\ngroup: g\n"


def test_a_mounted_configuration_is_read_though_its_files_are_links_within_the_folder(tmp_path: Path) -> None:
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..2026" / "ecg.yaml").write_text(GOOD)
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "ecg.yaml").symlink_to("..data/ecg.yaml")
    assert stream_names(tmp_path) == ["ecg"]
    assert read_stream(tmp_path, "ecg").topic == "t"


@pytest.mark.parametrize("target", ["/dev/zero", "/etc/hostname", "../outside.yaml"])
def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path, target: str) -> None:
    (tmp_path / "outside.yaml").write_text(GOOD)
    folder = tmp_path / "streams"
    folder.mkdir()
    (folder / "ecg.yaml").symlink_to(target)
    with pytest.raises(BadInput, match="is a link out of"):
        read_stream(folder, "ecg")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ecg.yaml")
    with pytest.raises(BadInput, match="is no plain file"):
        read_stream(tmp_path, "ecg")


def test_no_more_is_read_than_a_definition_may_have(tmp_path: Path) -> None:
    with (tmp_path / "ecg.yaml").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(BadInput, match=f"more than the {MOST_BYTES} bytes"):
        read_stream(tmp_path, "ecg")


@pytest.mark.parametrize("text", [b"\xff", b"topic: \xf0\x28", b""])
def test_what_is_no_text_or_no_mapping_is_one_sentence(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "ecg.yaml").write_bytes(text)
    with pytest.raises(BadInput, match=r"streams/ecg\.yaml"):
        read_stream(tmp_path, "ecg")


def test_no_file_has_the_dag_of_a_stream_or_of_another_file() -> None:
    odd = ["ecg\xaeward", "x" * 250, "\udcff", "A", "a-b", "a.b", "", "a b", "a\nb", "ecg_ward_856.", "1"]
    names = [*odd, *(name_in_airflow(n) for n in odd), "ecg_ward_856", "a_b"]
    ids = [ingest_dag_id(n) for n in names]
    assert len(set(ids)) == len(names)
    assert all(len(i) < 100 and i.isascii() for i in ids)


def test_ten_thousand_files_leave_out_no_stream_that_has_run_and_are_told_in_one_sentence(tmp_path: Path) -> None:
    streams, landing = tmp_path / "streams", tmp_path / "landing"
    streams.mkdir()
    (landing / "ward_7").mkdir(parents=True)
    for n in range(10_000):
        (streams / f"a{n:04}.yaml").touch()
    (streams / "ward_7.yaml").write_text(GOOD)
    began = time.process_time()
    found = find_streams(streams, most=500, landing=landing)
    assert time.process_time() - began < 2
    assert len(found.names) == 500
    assert "ward_7" in found.names
    assert len(found.left_out) == 9501
    assert "has 10001 files of streams; 500 are read, as most_streams allows" in found.sentence
    assert len(found.sentence) < 2000
    found.check("ward_7")
    with pytest.raises(BadInput, match=r"stream 'a9999' is left out: .*raise most_streams in the settings"):
        found.check("a9999")
    with pytest.raises(BadInput, match="there is no stream"):
        found.check("../ward_7")


def test_few_files_that_are_large_together_take_no_stream_away_that_has_run(tmp_path: Path) -> None:
    (tmp_path / "ward_7").mkdir()
    for n in range(40):
        (tmp_path / f"a{n}.yaml").write_bytes(b"a" * 60_000)
    (tmp_path / "ward_7.yaml").write_text(GOOD)
    found = find_streams(tmp_path, most=250, landing=tmp_path)
    assert "ward_7" in found.names
    assert sum((tmp_path / f"{name}.yaml").stat().st_size for name in found.names) <= 250 * BYTES_EACH
    assert len(found.left_out) == 40 + 1 - len(found.names)


def test_files_that_grow_after_they_have_run_take_no_smaller_one_s_place(tmp_path: Path) -> None:
    running = [f"ecg_{n:02}" for n in range(40)]
    grown = [f"aa{n:02}" for n in range(80)]
    for name in (*running, *grown):
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}.yaml").write_text(GOOD if name in running else "#" * MOST_BYTES)
    found = find_streams(tmp_path, most=500, landing=tmp_path)
    assert set(running) <= set(found.names)
    assert set(found.left_out) < set(grown)


def test_a_file_that_is_larger_than_any_that_is_read_takes_no_room(tmp_path: Path) -> None:
    for n in range(40):
        with (tmp_path / f"a{n:02}.yaml").open("wb") as file:
            file.truncate(MOST_BYTES + 1 + n)
    (tmp_path / "ward_7.yaml").write_text(GOOD)
    assert find_streams(tmp_path, most=500, landing=tmp_path).left_out == ()


def test_a_file_that_is_called_as_a_folder_of_others_is_none_that_has_run(tmp_path: Path) -> None:
    (tmp_path / ".told").mkdir()
    (tmp_path / "ward_7").mkdir()
    for name in (".told", "ward_7"):
        (tmp_path / f"{name}.yaml").write_text(GOOD)
    assert find_streams(tmp_path, most=1, landing=tmp_path).names == ("ward_7",)


def test_where_nobody_can_see_what_has_run_the_sentence_says_so(tmp_path: Path) -> None:
    (tmp_path / "landing" / "b").mkdir(parents=True)
    for name in "ab":
        (tmp_path / f"{name}.yaml").write_text(GOOD)
    unseen = tmp_path / "of another volume" / "landing"
    found = find_streams(tmp_path, most=1, landing=unseen)
    assert found.names == ("a",)
    assert f"which have run is not known here, where {unseen} cannot be seen" in found.sentence
    seen = find_streams(tmp_path, most=1, landing=tmp_path / "landing")
    assert seen.names == ("b",)
    assert "not known" not in seen.sentence


def test_what_is_within_the_bound_is_all_read(tmp_path: Path) -> None:
    for n in range(3):
        (tmp_path / f"s{n}.yaml").write_text(GOOD)
    found = find_streams(tmp_path, most=3, landing=tmp_path)
    assert (found.names, found.left_out, found.sentence) == (("s0", "s1", "s2"), (), "")


def test_a_file_counts_only_when_it_was_seen_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of it is a valid definition, too: of a stream that asks for no proof."""
    path, waited = tmp_path / "ecg.yaml", list[float]()
    whole = f"{GOOD}proof: mac\nproof_key: env:WAVESTITCH_PROOF_ECG\n"
    path.write_text(GOOD)

    def goes_on_writing(seconds: float) -> None:
        waited.append(seconds)
        path.write_text(whole)

    monkeypatch.setattr(time, "sleep", goes_on_writing)
    with pytest.raises(Transient, match=r"streams/ecg.yaml is being written"):
        read_settled_stream(tmp_path, "ecg")
    assert len(waited) == 1
    assert 0 < waited[0] <= SETTLED_SECONDS
    monkeypatch.setattr(time, "sleep", waited.append)
    assert read_settled_stream(tmp_path, "ecg").proof == "mac", "the second look waited, and saw the same"
    os.utime(path, (0, 0))
    assert read_settled_stream(tmp_path, "ecg").proof == "mac"
    assert len(waited) == 2, "nobody waits for a file that was written long ago"


@pytest.mark.parametrize("long_ago", [False, True])
def test_a_copy_that_ends_while_it_is_read_and_keeps_an_old_time_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long_ago: bool
) -> None:
    """As `cp -p` and `rsync --inplace --times` do: the time is that of what was copied, which may be the one before."""
    path, parse = tmp_path / "ecg.yaml", stream_files.parse_stream
    whole = f"{GOOD}proof: sha256\n"
    path.write_text(GOOD + "#" * (len(whole) - len(GOOD)))
    if long_ago:
        os.utime(path, (0, 0))

    def ends(text: str, *, name: str, where: str) -> Stream:
        path.write_text(whole)
        os.utime(path, (0, 0))
        return parse(text, name=name, where=where)

    monkeypatch.setattr(stream_files, "parse_stream", ends)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with pytest.raises(Transient, match=r"streams/ecg.yaml is being written"):
        read_settled_stream(tmp_path, "ecg")
