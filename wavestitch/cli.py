"""The command line: everything a person does by hand. Prints tables for people, and with --json what scripts read.

Exit codes: 0 done; 1 a terminal error; 2 wrong usage or input; 3 refused, the sentence names the way out; 4 fenced;
5 the gate is closed; 6 `verify` found that table and log differ, `compare` that a definition would change something; 7
they found no difference, but not all could be compared; 74 what it shows could not be written; 75 transient, the same
command may succeed later.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from wavestitch import console, console_backfill, terminal
from wavestitch.batch.abandon import abandon_batch
from wavestitch.batch.backfill import run_backfill, step_plan_backfill
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.history import whole_history
from wavestitch.batch.request import check_gate, earlier_plan, parse_duration, plan_request
from wavestitch.batch.run import RunOptions, Silent, catch_up, done_to_json, planned_to_json, run_batch
from wavestitch.batch.steps import step_plan
from wavestitch.cli_export import export
from wavestitch.cli_held import held
from wavestitch.cli_init import init
from wavestitch.cli_promote import promote
from wavestitch.cli_rewind import rewind
from wavestitch.cli_status import status, watch
from wavestitch.cli_undo import undo
from wavestitch.cli_verify import compare, verify
from wavestitch.cli_waveforms import plot, verify_table, waveforms
from wavestitch.contracts.errors import BadInput, WavestitchError
from wavestitch.contracts.instant import parse_time
from wavestitch.contracts.maintenance_stages import STAGES
from wavestitch.contracts.plain_text import check_utf8
from wavestitch.contracts.quantities import epoch_ms
from wavestitch.contracts.stream import shared_groups
from wavestitch.exit_codes import NOT_SHOWN, TRY_AGAIN, exit_code_of
from wavestitch.settings import declared, load_settings, stream_names

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Chunked waveforms from Kafka, stitched whole and published exactly once, in bounded batches.",
)

StreamName = Annotated[str, typer.Argument(help="A stream declared in streams/NAME.yaml")]
Partitions = Annotated[str | None, typer.Option(help="Of these partitions only, e.g. 0,2; the others stay")]
Until = Annotated[
    str | None, typer.Option(help="No further than PARTITION:OFFSET,…; positions move to there (the next to be read)")
]
Interval = Annotated[
    str | None, typer.Option(help="Backfill START/END (ISO times, UTC): waveforms that start in it; positions stay")
]
_CHANGING = frozenset({"init", "up", "down", "produce", "run", "abandon", "export"})
"""Commands that do something whatever their options."""
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts")]


def main() -> None:
    """The entry point: an error of ours is one sentence and an exit code, never a traceback."""
    terminal.never_fail()
    code = _carried_out(sys.argv[1:])
    if why := terminal.what_was_lost():
        terminal.err.print(f"not all of what was to be shown could be written ({why})", highlight=False)
        # What is done is done: by another code somebody might do it again.
        code = code or (0 if _does_something(sys.argv[1:]) else NOT_SHOWN)
    raise SystemExit(code)


def _carried_out(words: Sequence[str]) -> int:
    try:
        for word in words:
            check_utf8(word, of="the command")
        app()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except WavestitchError as error:
        if "--json" in words and not terminal.has_shown():
            print(json.dumps(error.to_json()))
        terminal.err.print(error.kind, style="red", end=": ", highlight=False)
        terminal.err.print(error.message, highlight=False)
        return exit_code_of(error)
    except MemoryError:
        terminal.err.print(
            "There is not enough memory for this command. Nothing that it did is lost: free some and give it again; or "
            "ask for less (--partitions, --until, --offsets), or lower limits.max_batch_records of the stream",
            highlight=False,
        )
        return TRY_AGAIN
    return 0


def _does_something(words: Sequence[str]) -> bool:
    return not {"--apply", "--keep", "--reject"}.isdisjoint(words) or not _CHANGING.isdisjoint(words[:1])


app.command()(init)


@app.command()
def up() -> None:
    """Start the embedded stack (Kafka, Spark, Airflow) and print its URLs and the login."""
    from spark_apps.server import ConnectServer  # noqa: PLC0415
    from spark_apps.start_archive import archived_start  # noqa: PLC0415
    from wavestitch.local.folders import CACHE  # noqa: PLC0415
    from wavestitch.local.java import find_java  # noqa: PLC0415
    from wavestitch.local.stack import start_stack  # noqa: PLC0415 - loads what starts Kafka and Airflow

    java_home = find_java(CACHE)
    conf = archived_start(cache=CACHE, java_home=java_home, say=_say)
    stack = start_stack(say=_say, spark_conf=conf, spark=ConnectServer(java_home, conf=conf))
    # On the terminal of whoever started it, and nowhere else.
    terminal.out.print(f"login    {stack.airflow.user} / {stack.airflow.password()}", highlight=False)


@app.command()
def down() -> None:
    """Stop exactly what `up` started. Data stay."""
    from wavestitch.local.stack import stop_stack  # noqa: PLC0415

    stop_stack(say=_say)


app.command()(status)
app.command()(watch)


@app.command()
def check(as_json: AsJson = False) -> None:
    """Check the settings and every stream's definition; touches nothing."""
    from wavestitch.schedule import schedule_problem  # noqa: PLC0415
    from wavestitch.validation.gate import check_expectations  # noqa: PLC0415 - takes seconds to import

    settings = load_settings()
    deployment = Deployment(settings)
    problems, streams = [s for s in (declared(settings).sentence,) if s], []
    for name in stream_names(settings):
        try:
            stream = deployment.stream(name)
            streams.append(stream)
            found = check_expectations(stream.expectations)
            crons = {"schedule": stream.schedule, "backfill_intervals": stream.backfill_intervals}
            found += filter(None, (schedule_problem(cron, key=key) for key, cron in crons.items() if cron))
            problems += [f"streams/{name}.yaml: {p}" for p in found]
        except BadInput as error:
            problems.append(error.message)
    problems += shared_groups(streams)
    remarks = [f"streams/{stream.name}.yaml: {remark}" for stream in streams for remark in stream.remarks()]
    said = {
        "settings": settings.redacted(),
        "streams": stream_names(settings),
        "problems": problems,
        "remarks": remarks,
    }
    _show(said, as_json, lambda: console.show_check(said))
    if problems:
        raise typer.Exit(2)


@app.command()
def produce(
    stream: StreamName,
    files: Annotated[list[Path], typer.Argument(help="Recordings; an unknown suffix is refused with the known ones")],
    chunk: Annotated[int, typer.Option(help="Bytes of samples per chunk")] = 8192,
    seconds: Annotated[float, typer.Option(help="Length of a recording, s")] = 60.0,
    strategy: Annotated[str, typer.Option(help="waveform-sticky, key-hash, round-robin, null-key-sticky")] = (
        "waveform-sticky"
    ),
    start: Annotated[
        str | None, typer.Option(help="Start time of files that have none of their own; now where absent")
    ] = None,
) -> None:
    """Cut recordings into chunks and send them to the stream's topic."""
    from wavestitch.producers.produce import produce_files  # noqa: PLC0415

    deployment = Deployment()
    declared = deployment.stream(stream)
    report = produce_files(
        declared,
        files,
        settings=deployment.kafka,
        proof=deployment.proof(declared),
        chunk_bytes=chunk,
        seconds=seconds,
        strategy=strategy,
        start_time_ns=time.time_ns() if start is None else parse_time(start),
        say=_say,
    )
    console.show_sent(report)


@app.command()
def plan(
    stream: StreamName,
    partitions: Partitions = None,
    until: Until = None,
    interval: Interval = None,
    as_json: AsJson = False,
) -> None:
    """What the next batch would read, why it starts there, and what it would cost. Touches nothing."""
    request = plan_request("manual", None, {"partitions": partitions, "until": until, "interval": interval})
    edges = DeploymentEdges(Deployment(), stream)
    if request.scope is not None:
        shown = step_plan_backfill(edges, request.scope, apply=False)
        _show(asdict(shown), as_json, lambda: console_backfill.show_backfill_plan(shown))
        return
    found = step_plan(edges, request, apply=False)
    for remark in edges.tables.remarks():
        _say(remark)
    _show(planned_to_json(found), as_json, lambda: console.show_plan(found))


@app.command()
def run(
    stream: StreamName,
    plan_id: Annotated[str | None, typer.Option("--plan", help="Carry an earlier plan through (again)")] = None,
    gate: Annotated[str, typer.Option(help="A closed gate: stop, accept, or of an ingest park (with --why)")] = "stop",
    why: Annotated[str, typer.Option(help="Recorded with an accepted or parked batch")] = "",
    offsets: Annotated[
        str | None, typer.Option(help="Read PARTITION:START-END,… instead; positions stay where they are")
    ] = None,
    interval: Interval = None,
    partitions: Partitions = None,
    until: Until = None,
    chain: Annotated[
        bool, typer.Option("--catch-up", help="Batch after batch, until one reaches the end of the log")
    ] = False,
    going_on: Annotated[
        str | None, typer.Option("--for", help="With --catch-up: so long also what comes meanwhile, e.g. 55m")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Carry one batch (or a backfill) through without Airflow: the same steps, with progress."""
    asked = {"offsets": offsets, "interval": interval, "plan_id": plan_id, "partitions": partitions, "until": until}
    if chain and any(v for name, v in asked.items() if name != "partitions"):
        raise BadInput(
            "--catch-up goes on from the stream's positions; leave --offsets, --interval, --until and --plan out"
        )
    if going_on is not None and not chain:
        raise BadInput("--for says how long --catch-up goes on; give both, or leave --for out")
    seconds = parse_duration(going_on)
    request = plan_request("manual", None, asked)
    checked, reason = check_gate(gate, why, request)
    options = RunOptions(request=request, plan_id=earlier_plan("manual", asked), gate=checked, why=reason)
    with nullcontext(Silent()) if as_json else console.ProgressBars() as watcher:
        if options.request.scope is not None:
            edges = DeploymentEdges(Deployment(), stream, gate_ahead=True)
            filled = run_backfill(edges, options.request.scope, options, watcher=watcher)
            _show(asdict(filled), as_json, lambda: console_backfill.show_backfilled(filled))
            return
        if not chain:
            done = [run_batch(DeploymentEdges(Deployment(), stream, gate_ahead=True), options, watcher=watcher)]
        else:
            done = list(catch_up(Deployment(), stream, options, watcher=watcher, seconds=seconds))
    found = [done_to_json(d) for d in done]
    _show(found if chain else found[0], as_json, lambda: console.show_all_published(done))


@app.command()
def batches(stream: StreamName, as_json: AsJson = False) -> None:
    """The history of a stream, newest first."""
    rows = whole_history(Deployment().history(stream))
    _show([asdict(r) for r in rows], as_json, lambda: console.show_batches(rows))


@app.command()
def show(
    batch: Annotated[str, typer.Argument(help="A plan id, or its beginning")],
    whole: Annotated[bool, typer.Option("--whole", help="Of the audit also what is zero")] = False,
    as_json: AsJson = False,
) -> None:
    """One batch: ranges, fates, audit identity, seconds and MB/s per step."""
    deployment = Deployment()
    rows = [r for name in stream_names(deployment.settings) for r in whole_history(deployment.history(name))]
    found = [r for r in rows if batch and r.plan_id.startswith(batch)]
    if len(found) != 1:
        raise BadInput(f"{len(found)} batches begin with {batch!r}; `wavestitch batches STREAM` lists a stream's")
    _show(asdict(found[0]), as_json, lambda: console.show_batch(found[0], whole=whole))


app.command()(held)
app.command()(waveforms)
app.command()(plot)
app.command()(export)
app.command()(verify_table)
app.command()(verify)
app.command()(compare)
app.command()(promote)
app.command()(undo)


app.command()(rewind)


@app.command()
def maintain(
    stream: Annotated[str | None, typer.Argument(help="A stream; none: all that are declared")] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Do it; without, a dry run")] = False,
    only: Annotated[str, typer.Option(help=f"Some of {','.join(s.name for s in STAGES)}")] = "",
    let_go: Annotated[
        list[str] | None, typer.Option(help="A metadata file that no table of the catalog names any more; its rows go")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let go of what nobody needs any more: landing, small files, snapshots, orphans. A dry run by default."""
    import getpass  # noqa: PLC0415

    from wavestitch import console_maintain  # noqa: PLC0415
    from wavestitch.maintain.run import maintain_stream, raise_failures  # noqa: PLC0415

    if let_go and not stream:
        raise BadInput("--let-go is about one stream's tables; name the stream")
    deployment = Deployment()
    who = getpass.getuser() if let_go else ""
    chosen = [a.strip() for a in only.split(",") if a.strip()]
    found, failed = [], dict[str, WavestitchError]()
    for name in [stream] if stream else stream_names(deployment.settings):
        try:
            with nullcontext(Silent()) if as_json else console.ProgressBars() as watcher:
                found.append(
                    maintain_stream(
                        deployment, name, apply=apply, only=chosen, watcher=watcher, let_go=let_go or (), who=who
                    )
                )
        except WavestitchError as error:
            if stream:
                raise
            # One stream's trouble must not keep the others' disks full.
            failed[name] = error
            terminal.err.print(f"{name}: {error.message}", highlight=False)
    said = [*map(asdict, found), *({"stream": name, **error.to_json()} for name, error in failed.items())]
    _show(said, as_json, lambda: console_maintain.show_maintenance(found))
    if failed:
        raise next(iter(failed.values()))
    raise_failures(found)


@app.command()
def abandon(
    stream: StreamName,
    plan_id: Annotated[str, typer.Option("--plan", help="The plan of a batch that is under way")],
    why: Annotated[str, typer.Option(help="Kept with the batch")],
) -> None:
    """Give a batch under way up for good: it ends fenced from now on, and maintenance may remove what it has."""
    import getpass  # noqa: PLC0415

    abandon_batch(Deployment(), stream, plan_id, who=getpass.getuser(), why=why, at_ms=epoch_ms(time.time_ns()))
    terminal.out.print(f"batch {plan_id[:16]} is abandoned; the next one reads its offsets anew")


def _say(text: str) -> None:
    terminal.err.print(text, highlight=False, soft_wrap=True)


def _show(found: Any, as_json: bool, pretty: Callable[[], None]) -> None:
    if as_json:
        print(json.dumps(found, indent=1, default=str))
    else:
        pretty()


if __name__ == "__main__":
    main()
