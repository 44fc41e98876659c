"""`make test-docker`: builds the image, starts every service of compose.yaml in it, and has the demo's batches pass.

Each service runs with its own command and health check, in the order and under the conditions that the file says. What
was found is in `.wavestitch/docker-report.json`. Exit code 0 only if everything held; whatever was started is stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.conftest import ROOT
from tests.docker.composition import Composition, read_composition
from tests.docker.container import ComposedRun, Container, marked
from tests.docker.image import Images, what_is_missing
from tests.docker.pages import unseen
from tests.docker.proof import (
    beyond_loopback,
    more_than_they_need,
    private_keys_of_the_image,
    secrets_the_image_tells,
    shown_secrets,
    writable,
)
from wavestitch.child_environment import child_environment

REPORT = ROOT / ".wavestitch" / "docker-report.json"
_HEALTHY_SECONDS = 300
_ONCE_SECONDS = 1800
_BEGAN = time.monotonic()


def say(text: str) -> None:
    print(f"[{time.monotonic() - _BEGAN:6.1f} s] {text}", file=sys.stderr, flush=True)


def main() -> int:
    options = _options()
    if missing := what_is_missing():
        print("\n".join(["what is needed here and is not there:", *missing]), file=sys.stderr)
        return 2
    folder = options.folder or Path(tempfile.mkdtemp(prefix="wavestitch-docker-"))
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)  # the containers' user goes through it
    report: dict[str, Any] = {"ok": False, "broken": []}
    # Whoever ends it, by `timeout` for one, has all that it started stopped, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        images = Images(folder)
        if not options.built:
            build(images, options, report)
        carry_through(images, report, only=frozenset(options.only), demo=not options.no_demo)
    finally:
        REPORT.parent.mkdir(exist_ok=True)
        REPORT.write_text(json.dumps(report, indent=1, default=str))
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    for line in report["broken"]:
        say(f"BROKEN: {line}")
    say(f"report in {REPORT.relative_to(ROOT)}")
    return 0 if report["ok"] else 1


def build(images: Images, options: argparse.Namespace, report: dict[str, Any]) -> None:
    log = images.folder / "build.log"
    began = time.monotonic()
    say("making a base by debootstrap" if options.base is None else f"base {options.base}")
    base = options.base or images.make_base(mirror=options.mirror, log=log)
    say(f"building the image (log: {log})")
    images.build(base, log=log)
    report["build"] = {"base": base, "seconds": round(time.monotonic() - began)}


def carry_through(images: Images, report: dict[str, Any], *, only: frozenset[str], demo: bool) -> None:
    """`only`: these services and what they need, and no more than that; none: everything."""
    root, config, broken = images.mounted(), images.config(), report["broken"]
    composition, composed = _prepare(images.folder, root, config)
    secrets = {name: path.read_text().strip() for name, path in composed.secrets.items()}
    secrets["the password of admin"] = json.loads(secrets.pop("airflow_passwords"))["admin"]
    report["image"] = {"mebibytes": _size(root) >> 20, "user": config["User"]}
    broken += [f"{path} of the image is a private key" for path in private_keys_of_the_image(root)]
    broken += secrets_the_image_tells(config)
    containers: dict[str, Container] = {}
    report["services"] = {}
    with _stopping(composition, containers, report, broken), measuring(composed.run) as peaks:
        bring_up(composition, composed, containers, report["services"], only=only)
        broken += beyond_loopback(composed.run)
        broken += more_than_they_need(composed.run, user=int(config["User"].split(":")[0]))
        broken += writable(list(containers.values()))
        if demo and not only:
            tell_the_demo(composition, composed, containers, secrets, report)
        if not only:
            report["one of each is gone"] = without_one_of_each(containers, broken)
    for name, peak in peaks.items():
        report["services"].setdefault(name, {})["peak_mebibytes"] = peak >> 20
        if peak > composition.services[name].memory:
            broken.append(f"{name} took {peak >> 20} MiB, more than its limit")
    report["ok"] = not broken


def tell_the_demo(
    composition: Composition,
    composed: ComposedRun,
    containers: dict[str, Container],
    secrets: dict[str, str],
    report: dict[str, Any],
) -> None:
    """The story of `make demo` on what runs, and what people then see."""
    broken = report["broken"]
    demo = Container(composed, composition.services["demo"], composed.folder / "logs" / "demo.log")
    report["demo"] = once(demo, following=True)
    broken += beyond_loopback(composed.run)
    texts = {f"what {p.stem} printed": p.read_text(errors="replace") for p in (composed.folder / "logs").iterdir()}
    broken += shown_secrets(composed.run, secrets, texts)
    result = composed.volume("data") / "demo-report.json"
    report["demo"]["report"] = json.loads(result.read_text()) if result.exists() else {"broken": ["no report"]}
    broken += [f"demo: {line}" for line in report["demo"]["report"]["broken"]]
    airflow = f"http://{composed.address('airflow-api')}:8080"
    broken += unseen(airflow, user="admin", password=secrets["the password of admin"], streams=("ecg", "seismic"))
    broken += still_unhealthy(containers)


def bring_up(
    composition: Composition,
    composed: ComposedRun,
    containers: dict[str, Container],
    told: dict[str, dict[str, Any]],
    *,
    only: frozenset[str],
) -> None:
    """Each service as soon as what it needs is healthy or done, as an engine does it: several at once."""
    wanted = only.union(*(composition.all_needed(name) for name in only)) or set(composition.services)
    waiting, ready, began = [s for s in composition.in_order() if s.name in wanted], set[str](), dict[str, float]()
    while waiting or began:
        for service in [s for s in waiting if s.needs.keys() <= ready]:
            waiting.remove(service)
            container = Container(composed, service, composed.folder / "logs" / f"{service.name}.log")
            if service.once:
                told[service.name] = once(container)
                ready.add(service.name)
                continue
            container.start()
            containers[service.name], began[service.name] = container, time.monotonic()
        for name in list(began):
            seconds = time.monotonic() - began[name]
            if containers[name].healthy():
                say(f"{name} is healthy after {seconds:.0f} s")
                told[name] = {"healthy_after_seconds": round(seconds, 1)}
                ready.add(name)
                del began[name]
            elif containers[name].process.poll() is not None or seconds > _HEALTHY_SECONDS:
                raise RuntimeError(containers[name].why_not())
        time.sleep(0.5)  # between two looks at all of them


def once(container: Container, *, following: bool = False) -> dict[str, Any]:
    """A service that ends by itself."""
    began = time.monotonic()
    container.start()
    try:
        shown = 0
        while container.process.poll() is None and time.monotonic() - began < _ONCE_SECONDS:
            time.sleep(0.5)  # between two looks at its log
            lines = container.log.read_text(errors="replace").splitlines() if following else []
            for line in lines[shown:]:
                say(f"  {line}")
            shown = max(shown, len(lines))
    finally:
        code = container.process.poll()
        container.end()
    if code != 0:
        raise RuntimeError(f"{container.service.name} ended with {code}; its last words:\n{container.last_words(60)}")
    say(f"{container.service.name} is done after {time.monotonic() - began:.0f} s")
    return {"ended_with": code, "seconds": round(time.monotonic() - began, 1)}


def without_one_of_each(containers: dict[str, Container], broken: list[str]) -> dict[str, Any]:
    """A broker and a Spark worker are killed: chunks are acknowledged and a batch passes; then both come back."""
    began = time.monotonic()
    killed, inside = ("kafka-1", "spark-worker-1"), containers["airflow-scheduler"]
    for name in killed:
        containers[name].end()
    # Under a name that nobody has sent: of one that the demo published, other samples would be in conflict with it.
    recording = "/tmp/mitdb-999-mlii.npz"
    done: dict[str, Any] = {}
    for words in (
        ["cp", "/opt/wavestitch/examples/ecg/mitdb-208-mlii.npz", recording],
        ["wavestitch", "produce", "ecg", recording],
        ["wavestitch", "run", "ecg", "--json"],
        ["wavestitch", "verify-table", "ecg", "--json"],
    ):
        asked = inside.run(words, seconds=_ONCE_SECONDS)
        done[words[1]] = asked.stdout.strip()
        if asked.returncode:
            broken.append(f"without {killed} {words[:2]} ended with {asked.returncode}: {asked.stderr[-800:]}")
    try:
        sent = int(done["produce"].split()[0])  # "5 waveforms in 30 chunks …"
        came = json.loads(done["run"])["published"]["waveforms"]
    except (ValueError, KeyError, IndexError):
        sent, came = -1, done["run"]
    if came != {"published": sent, "open": 0, "quarantined": 0}:
        broken.append(f"without {killed} {sent} waveforms were sent and this came of them: {came}")
    say(f"without {' and '.join(killed)}, of {sent} waveforms came {came}")
    for name in killed:
        containers[name].start()
    deadline = time.monotonic() + _HEALTHY_SECONDS
    while late := still_unhealthy({name: containers[name] for name in killed}):
        if time.monotonic() > deadline:
            broken += late
            break
        time.sleep(1)  # between two looks
    return {"killed": killed, "sent": sent, "came": came, "seconds": round(time.monotonic() - began, 1), **done}


def still_unhealthy(containers: dict[str, Container]) -> list[str]:
    return [f"{name} is not healthy any more" for name, found in containers.items() if not found.healthy()]


@contextmanager
def _stopping(
    composition: Composition, containers: dict[str, Container], report: dict[str, Any], broken: list[str]
) -> Iterator[None]:
    """Stops what runs in the end, the last first."""
    try:
        yield
    except RuntimeError as error:
        broken.append(str(error))
        say(str(error))
    finally:
        for wave in _waves(composition, containers):
            for container in wave:
                container.ask_to_stop()
            for container in wave:
                container.stop()
                if container.killed and not left_by_its_quorum(container, wave):
                    broken.append(f"{container.service.name} did not end by itself on {container.service.stop_signal}")
        say("everything is stopped")


def left_by_its_quorum(container: Container, wave: list[Container]) -> bool:
    """Whether it is a broker that two of three have left: it waits for a controller that is gone, to tell it that it
    goes. An engine kills it after its grace, as was done here (docs/operations.md)."""
    others = [c for c in wave if c is not container and c.service.command == container.service.command]
    return container.service.command == ["kafka-node"] and sum(c.process.poll() is not None for c in others) == 2


def _waves(composition: Composition, containers: dict[str, Container]) -> Iterator[list[Container]]:
    """What stops at once: those that no other one needs any more, and so on."""
    left = dict(containers)
    while left:
        wave = [name for name in left if not any(name in composition.all_needed(other) for other in left)]
        yield [left.pop(name) for name in wave]


@contextmanager
def measuring(run: str) -> Iterator[dict[str, int]]:
    """The most memory that each service took, shared pages shared out, as it is looked at now and then."""
    peaks: dict[str, int] = {}
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(3):
            now: dict[str, int] = {}
            for process, service in marked(run):
                try:
                    found = process.memory_full_info()
                except psutil.Error:
                    continue
                now[service] = now.get(service, 0) + (getattr(found, "pss", 0) or found.rss)
            for service, taken in now.items():
                peaks[service] = max(peaks.get(service, 0), taken)

    beside = threading.Thread(target=look, daemon=True)
    beside.start()
    try:
        yield peaks
    finally:
        ended.set()
        beside.join()


def _prepare(folder: Path, root: Path, config: Any) -> tuple[Composition, ComposedRun]:
    """What `docker compose up` finds: secrets, streams, and names for all services."""
    for name in ("logs", "volumes"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir()
    shutil.rmtree(folder / "docker", ignore_errors=True)
    (folder / "docker").mkdir()
    shutil.copytree(ROOT / "docker" / "bin", folder / "docker" / "bin")
    shutil.copytree(ROOT / "streams", folder / "streams", dirs_exist_ok=True)
    subprocess.run([str(folder / "docker" / "bin" / "make-secrets")], check=True, env=child_environment(os.environ))
    composition = read_composition()
    draw = random.SystemRandom()
    net = f"127.{draw.randint(16, 250)}.{draw.randint(1, 250)}"
    hosts = folder / "hosts"
    names = [f"{net}.{number} {name}" for number, name in enumerate(composition.services, start=10)]
    hosts.write_text("\n".join(["127.0.0.1 localhost", *names]) + "\n")
    secrets = {name: folder / "docker" / "secrets" / path.name for name, path in composition.secrets.items()}
    # An engine's user gets to a secret that is bound, whatever the folder above it says: only its own mode counts.
    return composition, ComposedRun(f"{os.getpid()}-{net}", folder, root, config, hosts, secrets)


def _size(root: Path) -> int:
    return sum(p.lstat().st_size for p in root.rglob("*") if p.is_file() and not p.is_symlink())


def _options() -> argparse.Namespace:
    ask = argparse.ArgumentParser(prog="python -m tests.docker", description=str(__doc__).splitlines()[0])
    ask.add_argument("--base", help="an image that buildah can reach; made by debootstrap unless given")
    ask.add_argument("--mirror", help="where debootstrap gets Debian from; its own default unless given")
    ask.add_argument("--folder", type=Path, help="where everything lies; a temporary one unless given")
    ask.add_argument("--built", action="store_true", help="the image is in the folder already")
    ask.add_argument("--only", nargs="*", default=[], metavar="SERVICE", help="these and what they need; no demo")
    ask.add_argument("--no-demo", action="store_true", help="only what comes before and after it")
    ask.add_argument("--keep", action="store_true", help="leave the folder as it is in the end")
    return ask.parse_args()


if __name__ == "__main__":
    sys.exit(main())
