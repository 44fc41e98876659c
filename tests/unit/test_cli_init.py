"""`wavestitch init`: what it asks, what it writes, and that it replaces nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import make_url
from typer.testing import CliRunner

from wavestitch.cli import app
from wavestitch.cli_init import Answers, settings_text, stream_text, written
from wavestitch.contracts.errors import BadInput, Refused
from wavestitch.local.stack import write_config
from wavestitch.settings import load_settings, load_stream
from wavestitch.tables.catalog import CatalogSettings, open_catalog

SAID = Answers("broker:9092", "ecg", "ecg-waveforms", "wavestitch-ecg", "0 3 * * *", Path("data"))


def changed(**values: object) -> Answers:
    return Answers(**({name: getattr(SAID, name) for name in Answers.__slots__} | values))


def test_what_is_asked_is_what_the_files_say(tmp_path: Path) -> None:
    answers = "\n".join(["ecg", "broker:9092", "ecg-waveforms", "wavestitch-ecg", "0 3 * * *", "kept"])
    done = CliRunner().invoke(app, ["init", str(tmp_path)], input=answers + "\n")
    assert done.exit_code == 0, done.output
    settings = load_settings({"WAVESTITCH_CONFIG": str(tmp_path / "wavestitch.toml")})
    assert settings.kafka.bootstrap == "broker:9092"
    assert settings.landing == tmp_path / "kept" / "landing"
    assert settings.spark.java_home is not None
    assert (settings.spark.java_home / "bin" / "java").exists()
    assert settings.tables.warehouse == f"file://{tmp_path}/kept/warehouse"
    stream = load_stream(settings, "ecg")
    assert (stream.topic, stream.group, stream.schedule) == ("ecg-waveforms", "wavestitch-ecg", "0 3 * * *")


def test_an_option_is_not_asked_for_and_the_rest_has_defaults(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["init", str(tmp_path), "--stream", "scope", "--bootstrap", "k:1"], input="\n" * 4)
    assert done.exit_code == 0, done.output
    assert "k:1" not in done.output
    settings = load_settings({"WAVESTITCH_CONFIG": str(tmp_path / "wavestitch.toml")})
    stream = load_stream(settings, "scope")
    assert (stream.topic, stream.group, stream.schedule) == ("scope", "wavestitch-scope", None)


@pytest.mark.parametrize("name", ["feature%2Fx", "100%", "%41", "a b+c", "ü"])
def test_the_catalog_is_in_the_folder_for_data_whatever_the_folder_is_called(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    path = folder / "wavestitch.toml"
    folder.mkdir()
    for text in (settings_text(SAID, folder=folder, java_home=folder), write_config_in(folder)):
        path.write_text(text)
        tables = load_settings({"WAVESTITCH_CONFIG": str(path)}).tables
        found = Path(str(make_url(tables.uri).database))
        assert found == Path(tables.warehouse.removeprefix("file://")).with_name("catalog.db")
    open_catalog(CatalogSettings("local", tables.uri, tables.warehouse))
    assert found.is_file()
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def write_config_in(folder: Path) -> str:
    return write_config(folder, bootstrap="127.0.0.1:1", java_home=folder, streams=folder / "streams").read_text()


def test_settings_that_are_there_stand(tmp_path: Path) -> None:
    (tmp_path / "wavestitch.toml").write_text("mine")
    with pytest.raises(Refused, match="is not replaced"):
        written(SAID, folder=tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["wavestitch.toml"]
    assert (tmp_path / "wavestitch.toml").read_text() == "mine"


def test_a_stream_that_is_there_stands_and_no_settings_are_made_for_it(tmp_path: Path) -> None:
    (tmp_path / "streams").mkdir()
    (tmp_path / "streams" / "ecg.yaml").write_text("topic: mine\ngroup: g\n")
    with pytest.raises(Refused, match=r"ecg\.yaml is there already"):
        written(SAID, folder=tmp_path)
    assert (tmp_path / "streams" / "ecg.yaml").read_text() == "topic: mine\ngroup: g\n"
    assert not (tmp_path / "wavestitch.toml").exists()


def test_what_was_cut_off_after_the_stream_goes_on(tmp_path: Path) -> None:
    (tmp_path / "streams").mkdir()
    (tmp_path / "streams" / "ecg.yaml").write_text(stream_text(SAID))
    assert [p.name for p in written(SAID, folder=tmp_path)] == ["ecg.yaml", "wavestitch.toml"]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"topic": "no topic"}, "'topic' is not valid"),
        ({"group": ""}, "'group' is not valid"),
        ({"schedule": "61 * * * *"}, "never comes"),
        ({"bootstrap": "sasl://user:secret@broker:9092"}, r"kafka\.bootstrap holds"),
        ({"bootstrap": "a\x7fb:1"}, "cannot be read as TOML"),
        ({"stream": "No Name"}, "name"),
    ],
)
def test_what_no_file_can_say_is_refused_before_anything_is_written(
    tmp_path: Path, values: dict[str, object], sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence):
        written(changed(**values), folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../ecg", "a/b", "", "/etc/x"])
def test_a_stream_s_name_is_no_path(tmp_path: Path, name: str) -> None:
    words = ["init", str(tmp_path / "home"), "--stream", name, "--bootstrap", "k:1", "--topic", "t", "--group", "g"]
    done = CliRunner().invoke(app, [*words, "--schedule", "", "--data", "d"])
    assert isinstance(done.exception, BadInput)
    assert list(tmp_path.iterdir()) == []


def test_strange_words_stay_words(tmp_path: Path) -> None:
    """What is answered is quoted: no line of TOML or YAML comes of it."""
    folder = tmp_path / 'a "folder"\\ of ☃ 𝄞'
    said = changed(schedule="")
    for path in written(said, folder=folder):
        assert path.exists()
    settings = load_settings({"WAVESTITCH_CONFIG": str(folder / "wavestitch.toml")})
    assert settings.landing == folder / "data" / "landing"
    assert 'bootstrap = "x\\n[kafka.options]"' in settings_text(
        changed(bootstrap="x\n[kafka.options]"), folder=folder, java_home=folder
    )
