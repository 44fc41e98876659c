#!/usr/bin/env bash
# Makes .venv hold exactly what requirements/*.txt pin, and this project in editable form.
#   scripts/bootstrap.sh runtime|export|dev
# When nothing has changed since the last time, it is done at once.
set -euo pipefail
cd "$(dirname "$0")/.."

kind=${1:-runtime}
case $kind in
runtime | dev) files=("requirements/$kind.txt") ;;
export) files=(requirements/runtime.txt requirements/export.txt) ;;
*)
    echo "usage: scripts/bootstrap.sh runtime|export|dev (not '$kind')" >&2
    exit 2
    ;;
esac

# Bytecode is compiled once here, or at every start of everything otherwise.
unset PYTHONDONTWRITEBYTECODE
# Another activated environment must not be the one that is changed.
unset VIRTUAL_ENV PYTHONPATH PYTHONHOME

say() { echo ">> $*" >&2; }

state() {
    cat requirements/*.txt pyproject.toml
    pwd
    .venv/bin/python -c 'import sys; print(sys.version)'
}
stamp=.venv/wavestitch-installed
current() { state 2>/dev/null | cksum; }

if [ -x .venv/bin/python ] && [ -f "$stamp" ]; then
    read -r had rest <"$stamp"
    # The development environment has all of it, the one for exporting all of the smallest.
    if [ "$rest" = "$(current)" ] && { [ "$had" = "$kind" ] || [ "$had" = dev ] || [ "$had-$kind" = export-runtime ]; }; then
        exit 0
    fi
fi

if ! .venv/bin/python -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' 2>/dev/null; then
    python=$(scripts/find_python.sh)
    say "making .venv with $python"
    rm -rf .venv
    scripts/uv.sh venv --quiet --no-python-downloads --python "$python" .venv
fi
rm -f "$stamp"
say "installing the packages that ${files[*]} pin; the first time this takes a minute or two (about 2 GB)"
# `sync`, not `install`: what is not in the file has no place in the environment, and nothing is resolved again.
scripts/uv.sh pip sync --python .venv/bin/python --require-hashes --compile-bytecode "${files[@]}"
say "installing wavestitch itself, as it is in this folder"
scripts/uv.sh pip install --python .venv/bin/python --quiet --no-deps --no-build-isolation --editable .
echo "$kind $(current)" >"$stamp"
say "ready"
