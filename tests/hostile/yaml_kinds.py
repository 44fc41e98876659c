"""Hostile stream definitions: what must be refused with one sentence, and what is odd and means what it says."""

from __future__ import annotations

from dataclasses import dataclass

HEAD = "topic: t\ngroup: g\n"
_LAUGHS = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"] + [
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)
]


@dataclass(frozen=True, slots=True)
class YamlKind:
    """`says`: a part of the sentence that refuses it; None: it is taken."""

    name: str
    text: str
    says: str | None
    stream: str = "x"


_BETWEEN = "expect_column_values_to_be_between"


def _kwargs(value: str, column: str = "row") -> str:
    return f"{HEAD}expectations:\n  - type: {_BETWEEN}\n    kwargs: {{column: {column}, min_value: {value}}}\n"


def yaml_kinds() -> list[YamlKind]:
    return [*_structures(), *_tags(), *_values(), *_names(), *_expectations(), *_taken()]


def _structures() -> list[YamlKind]:
    refused = {
        "nothing": ("", "holds a NoneType"),
        "a text": ("just words", "holds a str"),
        "a list": ("- topic: t", "holds a list"),
        "a NUL": (HEAD + "description: a\0b", "is not YAML"),
        "an unprintable byte": (HEAD + "description: \x07", "is not YAML"),
        "a tab as indentation": (HEAD + "limits:\n\tmax_chunks: 1", "is not YAML at line 4"),
        "an open bracket": (HEAD + "limits: [", "is not YAML at line"),
        "an open quote": (HEAD + 'description: "', "is not YAML at line"),
        "two documents": (HEAD + "---\n" + HEAD, "is not YAML at line 3"),
        "a directive of YAML 9": ("%YAML 9.9\n---\n" + HEAD, "is not YAML at line 1"),
        "5,000 open brackets": (HEAD + "x: " + "[" * 5000, "is not YAML"),
        "5,000 open mappings": (HEAD + "x: " + "{a: " * 5000, "is not YAML"),
        "300 steps of indentation": ("\n".join(" " * n + "a:" for n in range(300)), "unknown key"),
        "a megabyte": (HEAD + "#" * (1 << 20), "allowed are 65536"),
        "a billion laughs": (HEAD + "\n".join(_LAUGHS), "aliases"),
        "a billion laughs as a duration": ("\n".join(_LAUGHS) + f"\npatience: *a11\n{HEAD}", "aliases"),
        "a list in itself": (HEAD + "allowed_lateness: &a [*a]", "aliases"),
        "a mapping in itself": (HEAD + "limits: &a {max_chunks: *a}", "aliases"),
        "a merge of an alias": ("a: &a {topic: t}\n<<: *a\ngroup: g\n", "aliases"),
        "an alias of nothing": (HEAD + "description: *nobody", "aliases"),
        "a merge of a number": (HEAD + "<<: 3", "is not YAML at line 3"),
        "a key twice": (HEAD + "topic: other", "a key occurs twice"),
        "a key twice inside": (HEAD + "limits: {max_chunks: 1, max_chunks: 2}", "a key occurs twice"),
        "a list as key": (HEAD + "? [a]\n: b", "unhashable key"),
        "a number as key": (HEAD + "1: 2", "is not valid"),
        "null as key": (HEAD + "~: 2", "is not valid"),
    }
    return [YamlKind(name, text, says) for name, (text, says) in refused.items()]


def _tags() -> list[YamlKind]:
    refused = {
        "a command": "!!python/object/apply:os.system [ls]",
        "a Python object": "!!python/object:os.environ {}",
        "a Python module": "!!python/module:subprocess",
        "a Python name": "!!python/name:builtins.eval",
        "a tag of its own": "!secret value",
        "bytes": '!!binary "//79"',
        "a set": "!!set {a, b}",
        "an ordered map": "!!omap [a: 1]",
        "pairs": "!!pairs [a: 1]",
        "a word as integer": "!!int foo",
        "nothing as integer": "!!int ''",
        "a word as number": "!!float foo",
        "a word as truth": "!!bool maybe",
        "a word as time": "!!timestamp soon",
        "a date that is none": "2001-99-99",
        "an integer of 5,000 digits": "9" * 5000,
    }
    return [
        YamlKind(f"{name}, by tag or form", HEAD + "description: " + v, "is not YAML") for name, v in refused.items()
    ]


def _values() -> list[YamlKind]:
    refused = {
        "an unknown key": ("topik: x", "unknown key 'topik'"),
        "an unknown key of 60,000 characters": ("k" * 60_000 + ": x", "is not YAML"),
        "a thousand unknown keys": ("\n".join(f"k{n}: 1" for n in range(1000)), "and 992 more"),
        "limits as a list": ("limits: []", "'limits' is not valid"),
        "limits as null": ("limits: null", "'limits' is not valid"),
        "a size without unit": ("limits: {max_waveform_bytes: '10'}", "is not a size"),
        "a size as true": ("limits: {max_waveform_bytes: true}", "is not a size"),
        "a size of nothing": ("limits: {max_waveform_bytes: 0 B}", "greater than 0"),
        "a negative size": ("limits: {max_waveform_bytes: -1}", "greater than 0"),
        "a size above the cap": ("limits: {max_waveform_bytes: 513 MiB}", "at most 536870912"),
        "a batch of an exbibyte": ("limits: {max_batch_bytes: 1048576 TiB}", "less than or equal"),
        "a batch of 4,000 digits": ("limits: {max_batch_bytes: " + "9" * 4000 + "}", "a number has more than"),
        "a size in foreign digits": ("limits: {max_waveform_bytes: ٣ MiB}", "is not a size"),
        "a size of a thousand digits": (f"limits: {{max_waveform_bytes: {'9' * 1000} B}}", "is not a size"),
        "a size with a newline": ('limits: {max_waveform_bytes: "1 MiB\\n"}', "is not a size"),
        "infinitely many records": ("limits: {max_batch_records: .inf}", "is not valid"),
        "half a record": ("limits: {max_batch_records: 0.5}", "is not valid"),
        "records of 4,000 digits": ("limits: {max_batch_records: " + "9" * 4000 + "}", "a number has more than"),
        "more chunks than can be counted": ("limits: {max_chunks: 1048577}", "less than or equal"),
        "no workers": ("reading: {workers: 0}", "greater than or equal"),
        "a million workers": ("reading: {workers: 1000000}", "less than or equal"),
        "a slice of 4,000 digits": ("reading: {min_slice: " + "9" * 4000 + "}", "a number has more than"),
        "a duration of weeks": ("allowed_lateness: 3 weeks", "is not a duration"),
        "a duration of nothing": ("allowed_lateness: 0 s", "greater than 0"),
        "a duration of 101 years": ("allowed_lateness: 36866 d", "less than or equal"),
        "a duration as a list of 20,000": ("allowed_lateness: [" + "1, " * 20_000 + "]", "is not a duration"),
        "a cron of six fields": ("schedule: 0 0 * * * *", "five fields"),
        "a cron as a number": ("schedule: 5", "is not valid"),
        "a start in the middle": ("start: middle", "'start' is not valid"),
        "a description with half a surrogate pair": ('description: "\\ud800"', "not valid Unicode"),
        "a description as a list": ("description: [a]", "'description' is not valid"),
    }
    return [YamlKind(name, f"{HEAD}{line}\n", says) for name, (line, says) in refused.items()]


def _names() -> list[YamlKind]:
    topics = {
        "a path": "'../t'",
        "the folder above": "'..'",
        "the folder itself": "'.'",
        "a slash": "a/b",
        "a newline": '"t\\n"',
        "a NUL": '"t\\0"',
        "a space": "'a b'",
        "250 characters": "t" * 250,
        "a look-alike": "tорic",
        "nothing": "''",
        "null": "null",
        "a number": "7",
        "a command": "'$(reboot)'",
    }
    streams = {
        "a path": "../x",
        "an absolute path": "/etc/x",
        "a NUL": "x\0",
        "a newline": "x\n",
        "capitals": "X",
        "49 characters": "x" * 49,
        "a dot": "x.y",
        "nothing": "",
    }
    return [
        *(
            YamlKind(f"a topic named by {n}", f"topic: {t}\ngroup: g\n", "'topic' is not valid")
            for n, t in topics.items()
        ),
        YamlKind("a group named by a path", "topic: t\ngroup: ../g\n", "'group' is not valid"),
        YamlKind("no topic", "group: g\n", "'topic' is missing"),
        YamlKind("another stream's name", HEAD + "name: y\n", "file and name must agree"),
        YamlKind("a name of 50,000 characters", HEAD + f"name: {'y' * 50_000}\n", "file and name must agree"),
        *(
            YamlKind(f"a stream named by {n}", HEAD, "a stream's name has a-z", stream=name)
            for n, name in streams.items()
        ),
    ]


def _expectations() -> list[YamlKind]:
    return [
        YamlKind("an expectation that is none", HEAD + "expectations: [{type: drop_table}]\n", "expectations.0.type"),
        YamlKind("an expectation by path", HEAD + "expectations: [{type: ../expect_x}]\n", "expectations.0.type"),
        YamlKind("an expectation as a text", HEAD + "expectations: [expect_x]\n", "expectations.0"),
        YamlKind("an unknown severity", HEAD + "expectations: [{type: expect_x, severity: mild}]\n", "severity"),
        YamlKind(
            "an expectation that is not in the list", HEAD + "expectations: [{type: expect_x}]\n", "is not among the"
        ),
        YamlKind(
            "a condition that is evaluated",
            HEAD + "expectations: [{type: expect_column_values_to_be_null, kwargs: {column: row, "
            "row_condition: {type: pass_through, pass_through_filter: '@pd.io.common.os.system(\"id\")'}}}]\n",
            "is no condition",
        ),
        YamlKind("NaN as an argument", _kwargs(".nan"), "expectations.0.kwargs"),
        YamlKind("infinity as an argument", _kwargs("-.inf"), "expectations.0.kwargs"),
        YamlKind("a surrogate as an argument", _kwargs('"\\ud800"'), "not valid Unicode"),
    ]


def _taken() -> list[YamlKind]:
    return [
        YamlKind("an anchor that nobody uses", "topic: &t t\ngroup: g\n", None),
        YamlKind("JSON", '{"topic": "t", "group": "g"}', None),
        YamlKind("a description with a path and HTML", HEAD + "description: '<b>../../x</b>'\n", None),
        YamlKind("a description of 10,000 characters", HEAD + f"description: {'x' * 10_000}\n", None),
        YamlKind("a date as an argument", _kwargs("2026-01-01", column="day"), None),
        YamlKind("the greatest limits", HEAD + "limits: {max_batch_bytes: 1024 TiB, max_chunks: 1048576}\n", None),
    ]
