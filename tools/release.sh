#!/usr/bin/env bash
# Builds sdists and wheels of kinopt_ros and kinopt_msgs, checks them, and tries them in empty environments outside the clone.
# Usage: tools/release.sh ENVIRONMENT OUTPUT [PYTHON...]
# ENVIRONMENT has build, twine and what kinopt_msgs is built with. Wheels of kinopt_msgs are for the Python that built them:
# each further PYTHON builds one of its own from the sdist, and tries everything, too.
set -euo pipefail

cd "$(dirname "$0")/.."
repository=$PWD
python=$repository/$1/bin/python
mkdir -p "$2"
output=$(cd "$2" && pwd)
shift 2
rm -f "$output"/*.whl "$output"/*.tar.gz
search_path=$PATH
elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT

logged() {  # logged COMMAND...: prints the end of its output if it fails
    "$@" >"$output/build.log" 2>&1 || { tail -n 40 "$output/build.log" >&2; exit 1; }
}

install() {  # install FOLDER REQUIREMENT...
    "$1/bin/python" -m pip --disable-pip-version-check install --quiet --constraint "$repository/constraints.txt" \
        --find-links "$output" "${@:2}"
}

build_messages() {  # build_messages PYTHON: its wheel of kinopt_msgs, from the sdist
    local folder=$elsewhere/build
    "$1" -m venv --clear "$folder"
    "$python" "$repository/tools/build_requires.py" "$repository/kinopt_msgs/pyproject.toml" >"$elsewhere/build.txt"
    install "$folder" --requirement "$elsewhere/build.txt"
    PATH=$folder/bin:$search_path logged "$folder/bin/python" -m pip --disable-pip-version-check wheel --no-deps \
        --no-build-isolation --wheel-dir "$output" "$output/kinopt_msgs-$version.tar.gz"
}

try() {  # try PYTHON
    local folder=$elsewhere/empty
    "$1" -m venv --clear "$folder"
    install "$folder" "kinopt_ros[ros,collision]==$version" "kinopt_msgs==$version" pytest pytest-timeout
    "$folder/bin/python" -c "
import kinopt_msgs, kinopt_ros, pathlib, sys
for module in kinopt_msgs, kinopt_ros:
    where = pathlib.Path(module.__file__)
    assert where.is_relative_to(sys.prefix), where
assert kinopt_ros.__version__ == '$version', kinopt_ros.__version__"
    echo "-- kinopt ik"
    "$folder/bin/kinopt" ik --robot panda --xyz 0.4 0.1 0.5 --rpy 3.1416 0 0
    echo "-- kinopt demo --once"
    "$folder/bin/kinopt" demo --once
    echo "-- the conformance suite"
    "$folder/bin/python" -m pytest --quiet test_conformance.py
}

echo "== sdists and wheels (each wheel is built from its sdist)"
for package in . kinopt_msgs; do
    PATH=$(dirname "$python"):$search_path logged "$python" -m build --no-isolation --outdir "$output" "$package"
done
cd "$elsewhere"  # nothing is imported from the clone
version=$("$python" -c 'import kinopt_ros; print(kinopt_ros.__version__)')
for other in "$@"; do
    build_messages "$other"
done
(cd "$output" && du --apparent-size --human-readable -- *.whl *.tar.gz)
"$python" -m twine check --strict "$output"/*.whl "$output"/*.tar.gz

cat >test_conformance.py <<'PYTHON'
from kinopt_ros.conformance.ik import IkConformance


class TestCpu(IkConformance):
    solver = "cpu"
PYTHON
for each in "$python" "$@"; do
    echo "== an empty environment with $("$each" --version) and ROS 2 from wheels"
    try "$each"
done
echo "release: everything passed; the files are in $output"
