"""Who may come to what is made, whatever mask the process was started with: its owner and group, nobody else."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders.plans import make_plan
from tests.builders.table_rows import first_head
from tests.clean_processes import clean_processes
from tests.domain.maintenance_rig import Rig
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import check_disk
from wavestitch.contracts.errors import BadInput, Transient
from wavestitch.contracts.position import Head, HeadKind, Position
from wavestitch.contracts.quantities import EpochMs, Generation, Offset, Partition
from wavestitch.contracts.stream import Expectation
from wavestitch.folder_lock import folder_lock
from wavestitch.local import java
from wavestitch.local.jars import KAFKA, cached_jars
from wavestitch.maintain.landing_folders import write_first_seen
from wavestitch.modes import OWN_FOLDER, make_folder, make_own_folder, masked, open_new, opener
from wavestitch.settings import Settings
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.lookup.id_index import IdIndex
from wavestitch.tables.lookup.id_store import open_store
from wavestitch.tables.stream_tables import StreamTables
from wavestitch.validation import gate
from wavestitch.write_once import write_digested


def make_all(root: Path, mask: int) -> None:
    """What a batch makes, by a process that was started with that mask."""
    os.umask(mask)
    settings = Settings.model_validate(
        {
            "kafka": {"bootstrap": "127.0.0.1:1"},
            "tables": {"uri": f"sqlite:///{root}/catalog/catalog.db", "warehouse": f"file://{root}/warehouse"},
            "landing": str(root / "landing"),
            "docs": str(root / "docs"),
            "cache": str(root / "cache"),
        }
    )
    deployment = Deployment(settings)
    plan = make_plan()
    check_disk(settings.landing, plan)
    work = deployment.folder("ecg", plan.plan_id)
    work.create(plan)
    write_first_seen(settings.landing, "ecg", {"a": EpochMs(1)})
    tables = deployment.tables("ecg")
    tables.commit(
        None, Head(1, Generation(1), HeadKind.FIRST, "tid", {Partition(0): Position(Offset(0))}, note="x"), []
    )
    write_digested(tables.data_folder(), lambda digest: "a.parquet", lambda file: file.write(b"x"))
    make_folder(settings.cache / "ids", OWN_FOLDER)
    with open_store(settings.cache / "ids" / "a.sqlite", "identity", write=True):
        pass
    gate.validate_rows(
        gate.made_up_rows(),
        [Expectation(type="expect_column_values_to_not_be_null", kwargs={"column": "source"})],
        run_name="a" * 32,
        docs_folder=deployment.docs_folder("ecg", "a" * 32),
    )
    with folder_lock(root / "cache" / "jars"):
        pass


@pytest.mark.parametrize("mask", [0o000, 0o077, 0o022])
def test_all_that_a_batch_makes_is_for_owner_and_group(tmp_path: Path, mask: int) -> None:
    tmp_path.chmod(0o755)
    child = clean_processes().Process(target=make_all, args=(tmp_path, mask))
    child.start()
    child.join(300)
    assert child.exitcode == 0
    made = sorted(tmp_path.rglob("*"))
    names = " ".join(str(p.relative_to(tmp_path)) for p in made)
    for part in (
        "plan.json",
        "catalog.db",
        ".metadata.json",
        ".avro",
        "a.parquet",
        "index.html",
        "validations/",
        ".lock",
        "a.sqlite",
    ):
        assert part in names, f"nothing with {part} was made"
    found = {p.relative_to(tmp_path): (stat.S_IMODE(p.stat().st_mode), p.is_dir()) for p in made}
    wrong = {
        str(path): oct(mode)
        for path, (mode, folder) in found.items()
        if mode not in ({0o750, 0o700} if folder else {0o640, 0o440, 0o600})
    }
    assert wrong == {}
    # What must be nobody else's is, and what the group needs is not.
    assert found[Path("cache/ids")][0] == 0o700
    for shared in ("landing/ecg", "warehouse", "docs/ecg", "catalog"):
        assert found[Path(shared)] == (0o750, True)
    assert found[Path("catalog/catalog.db")] == (0o640, False)


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_modes_do_not_follow_the_mask_of_the_process(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        make_folder(tmp_path / "a" / "b")
        os.close(open_new(tmp_path / "a" / "file", os.O_WRONLY))
        with open(tmp_path / "a" / "text", "w", opener=opener) as file:
            file.write("x")
        with masked():
            (tmp_path / "a" / "others").mkdir()
            (tmp_path / "a" / "others" / "file").touch()
    finally:
        os.umask(before)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "a").rglob("*")}
    assert {modes["b"], modes["others"], stat.S_IMODE((tmp_path / "a").stat().st_mode)} == {0o750}
    assert {modes["file"], modes["text"]} == {0o640}


def test_what_was_there_before_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs").chmod(0o755)
    (tmp_path / "theirs" / "file").touch()
    (tmp_path / "theirs" / "file").chmod(0o664)
    make_folder(tmp_path / "theirs")
    os.close(open_new(tmp_path / "theirs" / "file", os.O_WRONLY))
    assert stat.S_IMODE((tmp_path / "theirs").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "theirs" / "file").stat().st_mode) == 0o664


def test_a_file_in_the_way_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(OSError):  # noqa: PT011  # which one depends on how deep it is
        make_folder(tmp_path / "a" / "b")
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "a")


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_a_cache_and_what_is_missing_above_it_is_its_owner_s_whatever_the_mask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        make_own_folder(tmp_path / "home" / ".cache" / "wavestitch", "jobs")
    finally:
        os.umask(before)
    made = {stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "home", *(tmp_path / "home").rglob("*"))}
    assert made == {0o700}


@pytest.mark.parametrize("part", ["", "jobs"])
def test_a_cache_that_everybody_may_write_is_refused(tmp_path: Path, part: str) -> None:
    make_own_folder(tmp_path / "cache", "jobs")
    (tmp_path / "cache" / part).chmod(0o777)
    with pytest.raises(BadInput, match=r"may be written by everybody \(mode 777\).* name another one"):
        make_own_folder(tmp_path / "cache", "jobs")
    (tmp_path / "cache" / part).chmod(0o775)
    make_own_folder(tmp_path / "cache", "jobs")


def test_a_cache_below_a_folder_that_everybody_may_write_is_ours_alone(tmp_path: Path) -> None:
    """The root of a volume as k3s, kind and minikube make one."""
    tmp_path.chmod(0o777)
    with pytest.raises(BadInput, match="may be written by everybody"):
        make_own_folder(tmp_path, "ids")
    assert stat.S_IMODE(make_own_folder(tmp_path / "own", "ids").stat().st_mode) == 0o700


@contextmanager
def with_no_more_rights_than_others() -> Iterator[None]:
    """Where we are root, whom no mode stops."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_who_may_only_read_the_catalog_s_file_reads_and_changes_nothing() -> None:
    with tempfile.TemporaryDirectory() as made:
        folder, kept = Path(made), Path(made) / "catalog"
        settings = CatalogSettings("local", f"sqlite:///{kept}/catalog.db", f"file://{folder}/warehouse")
        head = StreamTables(settings, "ecg").commit(None, first_head(), [])
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o777 if path.is_dir() else 0o444)
        kept.chmod(0o555)
        with with_no_more_rights_than_others():
            tables = StreamTables(settings, "ecg")
            assert tables.head() == head
            with pytest.raises(BadInput, match=r"the right to do this .*attempt to write a readonly database"):
                tables.commit(head, head.next(), [])
            with pytest.raises(Transient, match="Permission denied"):
                StreamTables(replace(settings, uri=f"sqlite:///{kept}/another.db"), "ecg")
        kept.chmod(0o755)


def of_somebody_else(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given away where we may, else we are somebody else."""
    if os.geteuid() == 0:
        os.chown(path, 12_345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)


def take_jars(cache: Path) -> None:
    cached_jars(KAFKA, cache_dir=cache, java_home=cache / "no-java", say=print)


def take_java(cache: Path) -> None:
    java._packaged_home(cache, {})


def take_ids(cache: Path) -> None:
    rig = Rig(Path(tempfile.mkdtemp(dir=cache.parent)) / "rig")
    rig.publish("w1")
    index = IdIndex(cache / "ids")
    StreamTables(rig.deployment.catalog_settings(), "ecg", id_index=index).published(["w1"])


@pytest.mark.parametrize("how", ["open", "given-away"])
@pytest.mark.parametrize("take", [take_jars, take_java, take_ids])
def test_whatever_is_run_or_believed_out_of_a_cache_is_taken_from_no_such_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, take: Callable[[Path], None], how: str
) -> None:
    cache = make_own_folder(tmp_path / "cache")
    if how == "open":
        cache.chmod(0o777)
    else:
        of_somebody_else(cache, monkeypatch)
    with pytest.raises(BadInput, match=r"may be written by everybody|belongs to user"):
        take(cache)
    assert [p for p in cache.rglob("*") if p.is_file()] == []


@pytest.mark.parametrize("take", [take_java, take_ids])
def test_what_was_made_in_a_cache_is_not_used_once_everybody_may_write_there(
    tmp_path: Path, take: Callable[[Path], None]
) -> None:
    take(tmp_path / "cache")
    (tmp_path / "cache").chmod(0o777)
    with pytest.raises(BadInput, match="may be written by everybody"):
        take(tmp_path / "cache")


@pytest.mark.parametrize(("part", "take"), [("jars", take_jars), ("ids", take_ids)])
def test_nor_out_of_a_folder_of_a_cache_that_everybody_may_write(
    tmp_path: Path, part: str, take: Callable[[Path], None]
) -> None:
    make_own_folder(tmp_path / "cache", part).chmod(0o777)
    with pytest.raises(BadInput, match="may be written by everybody"):
        take(tmp_path / "cache")


@pytest.mark.parametrize("mask", [0, 0o077])
def test_what_is_made_in_a_cache_is_its_owner_s_whatever_the_mask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        take_java(tmp_path / "cache")
        take_ids(tmp_path / "cache")
    finally:
        os.umask(before)
    made = {stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "cache", *(tmp_path / "cache").iterdir())}
    assert made == {0o700}


@pytest.mark.parametrize("mask", [0, 0o077])
def test_a_folder_and_what_is_missing_above_it_have_their_mode_under_any_mask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        made = make_folder(tmp_path / "landing" / "ecg")
    finally:
        os.umask(before)
    assert {stat.S_IMODE(p.stat().st_mode) for p in (made, made.parent)} == {0o750}
