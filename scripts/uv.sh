#!/usr/bin/env bash
# Runs uv: the one that requirements/uv.txt pins by hash, installed into this project's own folder. One that happens to
# be on PATH is another, in a version that nobody here chose, and it would install all the rest.
set -euo pipefail
cd "$(dirname "$0")/.."

own=.wavestitch/uv
wanted=$(cksum <requirements/uv.txt)
if [ "$(cat "$own/installed" 2>/dev/null || true)" != "$wanted" ]; then
    echo ">> installing uv into $own" >&2
    python=$(scripts/find_python.sh)
    rm -rf "$own"
    mkdir -p -m 700 .wavestitch
    "$python" -m venv "$own" >&2 || {
        echo "$python cannot make virtual environments; install its venv module (on Debian: python3-venv)." >&2
        exit 1
    }
    "$own/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt >&2
    echo "$wanted" >"$own/installed"
fi
exec "$own/bin/uv" "$@"
