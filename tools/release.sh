#!/usr/bin/env bash
# Builds sdists and wheels of both packages, checks them, and tries them in an empty environment outside the clone.
# Usage: tools/release.sh ENVIRONMENT OUTPUT [PYTHON...]
# ENVIRONMENT has build, twine and what kinopt_msgs is built with. Further PYTHONs try kinopt_ros without ROS, too: wheels of
# kinopt_msgs are for the Python that built them.
set -euo pipefail

cd "$(dirname "$0")/.."
repository=$PWD
python=$repository/$1/bin/python
mkdir -p "$2"
output=$(cd "$2" && pwd)
shift 2
rm -f "$output"/*.whl "$output"/*.tar.gz
export PATH=$(dirname "$python"):$PATH

echo "== sdists and wheels (each wheel is built from its sdist)"
for package in . kinopt_msgs; do
    "$python" -m build --no-isolation --outdir "$output" "$package" >"$output/build.log" 2>&1 ||
        { tail -n 40 "$output/build.log" >&2; exit 1; }
done
ls "$output"/*.whl "$output"/*.tar.gz
"$python" -m twine check "$output"/*.whl "$output"/*.tar.gz

elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
cd "$elsewhere"  # nothing is imported from the clone
version=$("$python" -c 'import kinopt_ros; print(kinopt_ros.__version__)')

environment() {  # environment FOLDER PYTHON REQUIREMENT...
    local folder=$1
    "$2" -m venv "$folder"
    "$folder/bin/python" -m pip --disable-pip-version-check install --quiet --constraint "$repository/constraints.txt" \
        --find-links "$output" "${@:3}"
    "$folder/bin/python" -c "
import kinopt_ros, pathlib, sys
where = pathlib.Path(kinopt_ros.__file__)
assert where.is_relative_to(sys.prefix), where
assert kinopt_ros.__version__ == '$version', kinopt_ros.__version__"
}

try_ik() {  # try_ik FOLDER
    "$1/bin/kinopt" ik --robot panda --xyz 0.4 0.1 0.5 --rpy 3.1416 0 0
}

echo "== an empty environment with ROS 2 from wheels"
environment "$elsewhere/ros" "$python" "kinopt_ros[ros,collision]==$version" "kinopt_msgs==$version" pytest pytest-timeout
echo "-- kinopt ik"
try_ik "$elsewhere/ros"
echo "-- kinopt demo --once"
"$elsewhere/ros/bin/kinopt" demo --once
echo "-- the conformance suite"
cat >test_conformance.py <<'PYTHON'
from kinopt_ros.conformance.ik import IkConformance


class TestCpu(IkConformance):
    solver = "cpu"
PYTHON
"$elsewhere/ros/bin/python" -m pytest --quiet test_conformance.py

for other in "$@"; do
    echo "== $other, without ROS"
    environment "$elsewhere/$(basename "$other")" "$other" "kinopt_ros==$version"
    try_ik "$elsewhere/$(basename "$other")"
done
echo "release: everything passed; the files are in $output"
