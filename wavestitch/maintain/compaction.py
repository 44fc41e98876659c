"""The action that puts small files together, by Iceberg's own rewriting on Spark, and proves that nothing changed.

Spark is started only where there is something to do. The snapshots that it makes carry no head; the batches' own
commits win against it. The old files stay until their snapshots expire.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from spark_apps.submit_maintenance import submit_compaction
from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.compaction import SORT_ORDER, CompactionJob, compacted_from_json
from wavestitch.contracts.maintenance import ActionReport, TableState
from wavestitch.contracts.ports import CommitConflict
from wavestitch.local.jars import SPARK_TABLES, cached_jars
from wavestitch.local.java import find_java
from wavestitch.maintain.leftovers import job_folder
from wavestitch.maintain.maintenance_run import Compact, MaintenanceRun
from wavestitch.maintain.what_goes import files_to_compact, smallest_good
from wavestitch.tables.access.spark_catalog import refuse_what_spark_would_obey, spark_catalog_conf
from wavestitch.tables.catalog import open_catalog
from wavestitch.tables.commit.own_place import local_path
from wavestitch.tables.commit.staged_files import make_durable
from wavestitch.tables.commit.table_layout import HELD_FILE_BYTES
from wavestitch.tables.lookup.file_scans import files_with_nonfinite
from wavestitch.tables.maintenance.replacement_proof import prove_replacements
from wavestitch.tables.maintenance.table_state import describe_table, named_files

_SHOWN = 5
_JARS = "spark.jars"


def compact_tables(run: MaintenanceRun) -> ActionReport:
    """Small data files of the three tables."""
    states: list[TableState] = []
    work: dict[str, dict[str, str]] = {}
    count = size = 0
    examples: list[str] = []
    kept: list[str] = []
    for stored in run.tables.stored():
        table = stored.load_to_change()  # Spark writes where the table says
        if table is None:
            continue
        if stored.name.endswith(".waveforms") and (odd := files_with_nonfinite(table)):
            # Spark writes one NaN for all; the proof behind it would find that, when the table has changed already.
            kept.append(
                f"{stored.name} stays as it is: {odd} of its files may have NaN, whose bits Spark does not keep"
            )
            continue
        state = describe_table(table)
        target = min(run.limits.target_file, HELD_FILE_BYTES if stored.name.endswith(".held") else 1 << 40)
        found = files_to_compact(state.files, target_bytes=target, at_least=run.limits.small_files)
        if found:
            states.append(state)
            work[stored.name] = _options(target, run.limits.small_files)
            if stored.name.endswith(".waveforms"):
                # As each batch leaves them: then a source, and ids that begin with it, are in few of the new files.
                work[stored.name][SORT_ORDER] = "source ASC NULLS FIRST, start_time ASC NULLS FIRST"
            count += sum(len(files) for files in found.values())
            size += sum(f.bytes for files in found.values() for f in files)
            examples += [f"{len(files)} files of {stored.name} {p}" for p, files in found.items()]
    facts = _rewrite(run, states, work) if run.apply and work else {}
    return ActionReport("compact", "files", count, size, tuple(examples[:_SHOWN]), tuple(kept), facts)


def _options(target: int, small_files: int) -> dict[str, str]:
    return {
        "target-file-size-bytes": str(target),
        "min-file-size-bytes": str(smallest_good(target)),
        "max-file-size-bytes": str(target * 2),
        "min-input-files": str(small_files),
        # What is rewritten at once may have to fit the memory of one task.
        "max-file-group-size-bytes": str(target * 2),
        "max-concurrent-file-group-rewrites": "1",
    }


def _rewrite(run: MaintenanceRun, states: list[TableState], work: dict[str, dict[str, str]]) -> dict[str, int]:
    before = {s.name: s.main[0].snapshot_id if s.main else None for s in states}
    known = {s.name: _names(run, s.name) for s in states}
    with job_folder(run.deployment.settings.cache) as folder:
        job = folder / f"{secrets.token_hex(8)}.json"
        job.write_text(CompactionJob(run.deployment.settings.tables.catalog, work).to_json(), encoding="utf-8")
        result = job.with_name(f"{job.stem}-result.json")
        run.say(f"Spark puts small files of {', '.join(sorted(work))} together")
        run.compact(job, result)
        done = compacted_from_json(result.read_text(encoding="utf-8"))
    facts = {"rewritten": 0, "added": 0, "conflicts": 0, "rows_compared": 0}
    for c in done:
        facts = {
            **facts,
            "rewritten": facts["rewritten"] + c.rewritten,
            "added": facts["added"] + c.added,
            "conflicts": facts["conflicts"] + c.conflicts,
        }
    for stored in run.tables.stored():
        table = stored.load()
        if table is not None and stored.name in before:
            run.say(f"comparing every row of what was put together in {stored.name}")
            facts["rows_compared"] += prove_replacements(table, since=before[stored.name])
            # Spark does not sync what it writes; until here the files before it are the ones that count.
            make_durable(sorted(Path(f) for f in named_files(table) - known[stored.name]))
    _adopt_held(run)
    return facts


def _adopt_held(run: MaintenanceRun) -> None:
    """What was put together of the held table counts once a head names it; a batch that was faster has its way."""
    head = run.tables.head()
    with suppress(CommitConflict):
        if head is not None:
            run.tables.adopt_held(head)
    run.tables.settle_held()


def _names(run: MaintenanceRun, name: str) -> set[str]:
    table = next(s.load() for s in run.tables.stored() if s.name == name)
    return {local_path(f) for f in named_files(table)} if table is not None else set()


def compact_locally(deployment: Deployment, *, say: Callable[[str], None], jars: Path | None = None) -> Compact:
    """The compaction app through spark-submit, on the master of the settings. `jars`: the folder that Iceberg's are
    fetched to once; the settings' cache unless given."""
    spark, cache = deployment.settings.spark, jars or deployment.settings.cache

    def submit(job: Path, result: Path) -> None:
        conf = dict(deployment.spark_conf)
        if f"spark.sql.catalog.{deployment.settings.tables.catalog}" not in conf:  # otherwise described by hand
            catalog = deployment.catalog_settings()
            refuse_what_spark_would_obey(open_catalog(catalog), catalog)
            conf = {**spark_catalog_conf(catalog), **conf}
        java_home = spark.java_home or find_java(cache)
        if _JARS not in conf:
            folder = cached_jars(SPARK_TABLES, cache_dir=cache, java_home=java_home, say=say)
            conf[_JARS] = ",".join(str(jar) for jar in sorted(folder.glob("*.jar")))
        submit_compaction(
            job_path=job,
            result_path=result,
            master=spark.master,
            conf=conf,
            java_home=java_home,
            environment=spark.environment,
            say=say,
        )

    return submit
