"""`wavestitch init`: settings and a first stream, by asking. Writes files of one folder, and nothing else.

What is there is never replaced. All that is to be written is read as it will be later before the first file is made,
and the settings come last: a folder in which this was cut off has none, and the same command goes on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
import yaml

from wavestitch import terminal
from wavestitch.contracts.errors import BadInput, Refused
from wavestitch.contracts.stream import parse_stream
from wavestitch.local.java import find_java
from wavestitch.modes import make_folder
from wavestitch.settings import parse_settings
from wavestitch.sqlite_address import sqlite_address
from wavestitch.write_once import write_first

CONFIG = "wavestitch.toml"
_Asked = str | None


@dataclass(frozen=True, slots=True)
class Answers:
    """`data`: the folder that holds what batches read and publish. `schedule`: empty for none."""

    bootstrap: str
    stream: str
    topic: str
    group: str
    schedule: str
    data: Path


def init(
    folder: Annotated[Path, typer.Argument(help="Where the files are to be")] = Path(),
    bootstrap: Annotated[_Asked, typer.Option(help="Where Kafka is: HOST:PORT, separated by commas")] = None,
    stream: Annotated[_Asked, typer.Option(help="The first stream's name")] = None,
    topic: Annotated[_Asked, typer.Option(help="Its topic, which must be there")] = None,
    group: Annotated[_Asked, typer.Option(help="Its consumer group, which nobody else may use")] = None,
    schedule: Annotated[
        _Asked, typer.Option(help="When Airflow runs it, as cron; empty: when somebody says so")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="For what batches read and publish")] = None,
) -> None:
    """Write settings and a first stream into a folder; asks for what no option says. Replaces nothing."""
    folder = folder.resolve()
    said = _answered(folder, bootstrap, stream, topic, group, schedule, data)
    for path in written(said, folder=folder):
        _say(f"wrote {path}")
    _say("Kafka with a login or TLS: see [kafka.options] in docs/settings.md")
    _say("Airflow: docs/settings.md and README.md say what a DAG folder of its own needs (two lines)")
    _say(f"then, in {folder}: wavestitch check; wavestitch plan {said.stream}; wavestitch run {said.stream}")


def _say(line: str) -> None:
    terminal.out.print(line, markup=False, highlight=False, soft_wrap=True)


def written(said: Answers, *, folder: Path) -> list[Path]:
    """Write it. Raises `BadInput` for what settings and streams cannot say, `Refused` for what is there already."""
    config, declared = folder / CONFIG, folder / "streams" / f"{said.stream}.yaml"
    stream = stream_text(said)
    _refuse_nonsense(said, stream=stream, settings=settings_text(said, folder=folder, java_home=folder), config=config)
    if config.exists():
        raise Refused(
            f"{config} is there already and is not replaced: edit it (docs/settings.md), or name another folder; "
            f"a further stream is a file beside {declared.parent / 'NAME.yaml'} (docs/streams.md)"
        )
    make_folder(declared.parent)
    # The one that is here, or else the one that came with the package, which is made ready in the cache.
    settings = settings_text(said, folder=folder, java_home=find_java(folder / said.data / "cache"))
    found = []
    for path, text in ((declared, stream), (config, settings)):
        if not write_first(path, text) and path.read_text(encoding="utf-8") != text:
            raise Refused(f"{path} is there already and says something else; move it away, or choose another name")
        found.append(path)
    return found


def _refuse_nonsense(said: Answers, *, stream: str, settings: str, config: Path) -> None:
    from wavestitch.schedule import schedule_problem  # noqa: PLC0415 - only `init` and `check` need it

    parse_stream(stream, name=said.stream)
    parse_settings(settings, where=str(config))
    if said.schedule and (problem := schedule_problem(said.schedule)):
        raise BadInput(problem)


def settings_text(said: Answers, *, folder: Path, java_home: Path) -> str:
    """The settings; paths are whole ones, so that command line and Airflow mean the same files."""
    data = (folder / said.data).resolve()
    lines = [
        "# Where things are: docs/settings.md names every entry.",
        f"landing = {_quoted(data / 'landing')}",
        f"cache = {_quoted(data / 'cache')}",
        f"docs = {_quoted(data / 'docs')}",
        f"streams = {_quoted(folder / 'streams')}",
        "",
        "[kafka]",
        f"bootstrap = {_quoted(said.bootstrap)}",
        "",
        "[tables]",
        f"uri = {_quoted(sqlite_address(data / 'catalog.db'))}",
        f"warehouse = {_quoted(f'file://{data}/warehouse')}",
        "",
        "[spark]",
        'master = "local[2]"',
        f"java_home = {_quoted(java_home)}",
    ]
    return "\n".join(lines) + "\n"


def stream_text(said: Answers) -> str:
    """The stream's definition; everything that it does not say has a default."""
    values = {"topic": said.topic, "group": said.group} | ({"schedule": said.schedule} if said.schedule else {})
    return "# docs/streams.md names every entry.\n" + yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


def _answered(
    folder: Path,
    bootstrap: _Asked,
    stream: _Asked,
    topic: _Asked,
    group: _Asked,
    schedule: _Asked,
    data: Path | None,
) -> Answers:
    name = _ask("name of the first stream", stream, "waveforms")
    if not name or Path(name).name != name:
        raise BadInput(f"{name!r} is no name of a stream: it names a file in {folder / 'streams'}")
    return Answers(
        bootstrap=_ask("Kafka (HOST:PORT, …)", bootstrap, "127.0.0.1:9092"),
        stream=name,
        topic=_ask("its topic", topic, name),
        group=_ask("its consumer group", group, f"wavestitch-{name}"),
        schedule=_ask("schedule (cron; empty: none)", schedule, ""),
        data=Path(_ask("folder for data", None if data is None else str(data), str(folder / "data"))),
    )


def _ask(what: str, given: _Asked, default: str) -> str:
    return given if given is not None else str(typer.prompt(what, default=default, show_default=bool(default))).strip()


def _quoted(value: object) -> str:
    """As TOML writes it."""
    return json.dumps(str(value), ensure_ascii=False)
