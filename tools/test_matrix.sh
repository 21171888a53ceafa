#!/bin/sh
# Runs the tests with each supported pair of ROS 2 wheels and Python, every pair in an environment of its own,
# and prints a table. Ends non-zero if a pair failed or could not be tested.
# Usage: tools/test_matrix.sh [pytest option...]
# PYTHON311, PYTHON312 and PYTHON313 name the interpreters; without them python3.11, ... on PATH are taken.

cd "$(dirname "$0")/.." || exit 1
MATRIX=${MATRIX:-.venv-matrix}
rows=
failures=0

row() { # row DISTRO VERSION PASSED FAILED SKIPPED REMARK
    rows="$rows$(printf '%-7s  Python %-5s %7s %7s %8s  %s' "$@")
"
}

unable() { # unable DISTRO VERSION REMARK: nothing was tested
    failures=$((failures + 1))
    row "$1" "$2" - - - "$3"
}

count() { # count REPORT ATTRIBUTE: from the summary in pytest's XML report
    sed -n "s/.*<testsuite [^>]* $2=\"\([0-9]*\)\".*/\1/p" "$1"
}

try() { # try DISTRO VERSION INTERPRETER [pytest option...]
    distro=$1 version=$2 python=$3
    shift 3
    venv=$MATRIX/$distro-$version
    report=$venv/report.xml
    echo "== ROS 2 $distro, Python $version"

    # Run it: a command of that name may exist and still not work (pyenv's shims).
    found=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
    if [ "$found" != "$version" ]; then
        name=PYTHON$(echo "$version" | tr -d .)
        echo "error: $python is not a working Python $version: install one, or name it by $name=/path/to/python." >&2
        unable "$distro" "$version" "no Python $version"
        return
    fi
    if ! "${MAKE:-make}" --no-print-directory env VENV="$venv" PYTHON="$python" DISTRO="$distro"; then
        unable "$distro" "$version" "the environment could not be made"
        return
    fi

    rm -f "$report"
    remark=passed
    "$venv/bin/python" -m pytest test --numprocesses 2 --dist loadfile --no-loadscope-reorder --junitxml="$report" "$@" || remark="failed (pytest's exit status $?)"
    [ "$remark" = passed ] || failures=$((failures + 1))
    if [ -s "$report" ]; then
        failed=$(($(count "$report" failures) + $(count "$report" errors)))
        skipped=$(count "$report" skipped)
        row "$distro" "$version" $(($(count "$report" tests) - failed - skipped)) "$failed" "$skipped" "$remark"
    else
        row "$distro" "$version" - - - "$remark, no report"
    fi
}

try kilted 3.11 "${PYTHON311:-python3.11}" "$@"
try jazzy 3.12 "${PYTHON312:-python3.12}" "$@"
try kilted 3.13 "${PYTHON313:-python3.13}" "$@"

printf '\n%-7s  %-12s %7s %7s %8s\n%s' ROS '' passed failed skipped "$rows"
[ "$failures" -eq 0 ]
