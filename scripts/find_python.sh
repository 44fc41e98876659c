#!/usr/bin/env bash
# Prints the path of a Python that the project runs on: 3.11, otherwise 3.12.
set -euo pipefail

seen=""
for version in 3.11 3.12; do
    for name in "python$version" python3 python; do
        path=$(command -v "$name" 2>/dev/null) || continue
        found=$("$path" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
        if [ "$found" = "$version" ]; then
            echo "$path"
            exit 0
        fi
        seen="$seen $path=$found"
    done
done
echo "Python 3.11 or 3.12 is needed and was not found on PATH (seen:${seen:- none}); install one and run this again." >&2
exit 1
