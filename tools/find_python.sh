#!/bin/sh
# Prints a Python 3.11-3.13 that can make the project's environment, or says in one sentence what is missing.
# Usage: tools/find_python.sh [PYTHON]

fail() {
    echo "error: $1" >&2
    exit 1
}

supported() {
    # Run it: a command of that name may exist and still not work (pyenv's shims).
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}

if [ -n "$1" ]; then
    supported "$1" || fail "PYTHON=$1 is not a working Python 3.11, 3.12 or 3.13, which the ROS 2 wheels need."
    python=$1
else
    for candidate in python3.13 python3.12 python3.11 python3; do
        if supported "$candidate"; then
            python=$candidate
            break
        fi
    done
    [ -n "$python" ] ||
        fail "no Python 3.11, 3.12 or 3.13 found, which the ROS 2 wheels need: install one, or name it by PYTHON=/path/to/python."
fi

"$python" -c 'import ensurepip, venv' >/dev/null 2>&1 ||
    fail "$python has no venv module, needed for the project's environment: install it (Debian, Ubuntu: the package python3-venv)."

"$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
    fail "$python comes without its C headers, needed to build kinopt_msgs: install them (Debian, Ubuntu: the package python3-dev)."

for compiler in "${CC:-cc}" "${CXX:-c++}"; do
    # shellcheck disable=SC2086  # CC may carry options or a wrapper
    set -- $compiler
    command -v "$1" >/dev/null 2>&1 ||
        fail "no C and C++ compiler ($1) found, needed to build kinopt_msgs: install one (Debian, Ubuntu: the package g++)."
done

"$python" -c 'import sys; print(sys.executable)'
