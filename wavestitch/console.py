"""What a person sees in a terminal: progress while a batch runs, and tables of plans, batches, held and rewinds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from wavestitch.batch.plan import NothingToDo
from wavestitch.batch.results import BatchDone, Finished, Planned
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.harmless import in_shell
from wavestitch.contracts.held import HeldChunk
from wavestitch.contracts.held_quota import said_of_places
from wavestitch.contracts.past_cost import Forecast
from wavestitch.contracts.quantities import Partition, clock
from wavestitch.contracts.reasons import Fate
from wavestitch.contracts.stages import Told
from wavestitch.producers.send_report import SendReport
from wavestitch.terminal import coloured, err, out

MIB = 1 << 20


class ProgressBars:
    """A `Watcher` with one bar a step; what is said stands above the bars."""

    def __init__(self) -> None:
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description:<16}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[note]}", markup=False),
            TimeElapsedColumn(),
            console=err,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> ProgressBars:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self._finish()
        self._progress.stop()

    def begin(self, step: str, total: int | None = None) -> None:
        self._finish()
        self._task = self._progress.add_task(step, total=total, note="")

    def say(self, text: str) -> None:
        self._progress.console.print(f"  {text}", style="dim", highlight=False)

    def progress(self, records: int, size: int) -> None:
        if self._task is not None:
            self._progress.update(self._task, completed=records, note=f"{records} records, {size / MIB:.1f} MiB")

    def _finish(self) -> None:
        if self._task is not None:
            task = self._progress.tasks[self._task]
            done = task.total if task.total is not None else 1
            self._progress.update(self._task, total=done, completed=done)


def show_stages(stages: Iterable[Told]) -> None:
    """What an operation does, stage by stage, and what undoes it: the very list that is carried out."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title="what it does", title_justify="left")
    table.add_column("stage", no_wrap=True)
    table.add_column("does")
    table.add_column("undo", style="dim")
    for told in stages:
        table.add_row(told.stage, told.does, told.undo)
    if table.rows:
        out.print(table)


def show_plan(plan: Planned | NothingToDo) -> None:
    if isinstance(plan, NothingToDo):
        out.print(f"Nothing to do: {plan.why}")
        show_stages(plan.stages)
        return
    table = Table(title=f"{plan.kind} of {plan.stream}, generation {plan.generation}", title_justify="left")
    for name in ("partition", "from", "to", "offsets", "why it starts there"):
        table.add_column(name, justify="left" if name.startswith("why") else "right")
    for p, start, end in plan.ranges:
        table.add_row(str(p), str(start), str(end), str(end - start), plan.why[Partition(p)])
    out.print(table)
    out.print(f"{plan.records} offsets, about {plan.estimated_bytes / MIB:.1f} MiB, {len(plan.units)} units of work")
    if plan.forecast is not None and plan.left:
        out.print(_catching_up(plan.stream, plan.forecast))
    for remark in plan.remarks:
        out.print(remark)
    show_stages(plan.stages)


def _catching_up(stream: str, forecast: Forecast) -> str:
    """What it takes to reach the log's end."""
    took = "" if forecast.seconds is None else f", about {forecast.seconds / 60:.1f} minutes as past batches went"
    return (
        f"the log's end is {forecast.batches} batches away: {forecast.offsets} offsets, about "
        f"{forecast.bytes / MIB:.1f} MiB{took}; `wavestitch run {stream} --catch-up` carries them through one after "
        "another"
    )


def show_all_published(results: Sequence[BatchDone | NothingToDo]) -> None:
    for result in results:
        show_published(result)


def show_published(result: BatchDone | NothingToDo) -> None:
    if isinstance(result, NothingToDo):
        out.print(f"Nothing to do: {result.why}")
        return
    done = result.published
    if isinstance(done, Finished):
        out.print(f"plan {done.plan_id[:16]} had been committed before: nothing was published twice")
    figures = done.published if isinstance(done, Finished) else done
    if figures.waveforms:  # of a batch that kept no row, the head alone tells little
        out.print(_sentence(figures.waveforms, figures.counts))
        if figures.reasons:
            out.print("not published: " + ", ".join(f"{n} chunks {r}" for r, n in figures.reasons.items()))
        for remark in figures.remarks:
            out.print(remark)
        out.print(_balance("audit identity", figures.identity_balances))
    if result.committed is not None:
        out.print(result.committed.offsets)


def _balance(what: str, balances: bool) -> Text:
    return coloured(f"{what} ", "balances" if balances else ("DOES NOT BALANCE", "red"))


def _sentence(waveforms: Mapping[str, int], counts: Mapping[str, int]) -> Text:
    return coloured(
        (f"{waveforms['published']} published", "green"),
        f", {waveforms['open']} open, "
        f"{waveforms['quarantined']} quarantined; "
        f"{counts['read']} chunks read, {counts['carried_in']} carried in, {counts['duplicate']} duplicates, "
        f"{counts['replay']} replays",
    )


def show_batches(rows: Sequence[BatchRow]) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("head", "gen"):
        table.add_column(name, justify="right")
    for name in ("kind", "committed", "plan"):
        table.add_column(name, no_wrap=True)
    for name in ("read", "publ.", "open", "quar.", "replay"):
        table.add_column(name, justify="right")
    for r in rows:
        figures = [r.waveforms.get(n, "") for n in ("published", "open", "quarantined")]
        table.add_row(
            str(r.sequence),
            str(r.generation),
            r.kind,
            clock(r.committed_ms, "minutes"),
            r.plan_id[:8],
            str(r.counts.get("read", "")),
            *(str(f) for f in figures),
            str(r.counts.get(Fate.REPLAY.value, "")),
        )
    out.print(table)
    out.print("read and replayed in chunks; published, open and quarantined in waveforms", style="dim")
    for r in rows:
        if r.note:
            out.print(f"head {r.sequence}: {r.note}", highlight=False)


def show_batch(row: BatchRow, *, whole: bool = False) -> None:
    """`whole`: of its audit also what is zero in every partition."""
    out.print(f"batch {row.plan_id} of {row.stream}: {row.kind}, head {row.sequence}, generation {row.generation}")
    out.print(f"committed {clock(row.committed_ms)}, decision {row.decision}")
    if row.note:
        out.print(row.note)
    if not row.partitions:
        return
    ranges = ", ".join(str(r) for r in row.read_ranges)
    out.print(f"read {ranges or 'nothing'} in {len(row.slices)} slices", highlight=False)
    table = Table(title="audit, in chunks", title_justify="left")
    table.add_column("")
    for p in row.partitions:
        table.add_column(f"partition {p}", justify="right")
    table.add_column("all", justify="right")
    came, went = ("planned", "holes", "read", "carried_in"), tuple(fate.value for fate in Fate)
    for names in (came, went):
        shown = [n for n in names if whole or any(p[n] for p in row.partitions.values())]
        for name in shown:
            figures = [p[name] for p in row.partitions.values()]
            last = name == shown[-1]
            table.add_row(name.replace("_", " "), *(str(n) for n in figures), str(sum(figures)), end_section=last)
    out.print(table)
    if not whole:
        out.print(f"what is zero is left out: wavestitch show {in_shell(row.plan_id[:16])} --whole", style="dim")
    out.print(_balance("identity", row.identity_balances))
    out.print(", ".join(f"{n} {w}" for w, n in row.waveforms.items()) + " (waveforms)")
    if row.reasons:
        out.print("reasons: " + ", ".join(f"{r} {n}" for r, n in row.reasons.items()))
    if row.without_bytes:
        out.print(said_of_places(row.without_bytes))
    read = row.bytes.get("read", 0)
    out.print(", ".join(f"{s} {t:.1f} s ({read / MIB / max(t, 1e-3):.1f} MB/s)" for s, t in row.seconds.items()))


def show_held(held: Sequence[HeldChunk], states: Sequence[str]) -> None:
    """One line a waveform and state. `states`: what each is now (see `held_states`)."""
    if not held:
        out.print("nothing is held")
        return
    groups: dict[tuple[str, str], list[HeldChunk]] = {}
    for h, state in zip(held, states, strict=True):
        groups.setdefault((h.chunk.waveform_id or "", state), []).append(h)
    for (waveform_id, state), chunks in sorted(groups.items()):
        where: dict[int, list[int]] = {}
        for h in chunks:
            where.setdefault(h.chunk.partition, []).append(h.chunk.offset)
        spots = ", ".join(f"partition {p} offsets {_spans(o)}" for p, o in sorted(where.items()))
        out.print(f"{in_shell(waveform_id) if waveform_id else '(no id)'}: {state}, {len(chunks)} chunks", style="bold")
        out.print(f"  {spots}", highlight=False)
        out.print(f"  {chunks[0].evidence}", highlight=False)


def _spans(offsets: Sequence[int], most: int = 8) -> str:
    """`3-7, 9`: sorted offsets as runs."""
    runs: list[list[int]] = []
    for o in sorted(offsets):
        if runs and o == runs[-1][1] + 1:
            runs[-1][1] = o
        else:
            runs.append([o, o])
    shown = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs[:most])
    return shown if len(runs) <= most else f"{shown}, … ({len(runs)} runs)"


def show_sent(report: SendReport) -> None:
    out.print(
        f"{report.waveforms} waveforms in {report.records} chunks sent to {report.topic}, {report.bytes / MIB:.1f} MiB"
    )
    for r in report.ranges:
        out.print(f"  {r}", highlight=False)


def show_check(found: Mapping[str, Any]) -> None:
    out.print_data(found["settings"])
    out.print(f"streams: {', '.join(found['streams']) or 'none'}")
    for problem in found["problems"]:
        out.print(problem, style="red")
    for remark in found["remarks"]:
        out.print(remark)
    if not found["problems"]:
        out.print("no problems")
