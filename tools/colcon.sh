#!/usr/bin/env bash
# Builds and tests the packages as a ROS workspace does, with colcon on the ROS wheels: once from the repository root, where
# CMake finds no ruckig, once from a workspace with the clone in src/, as the README documents it, and with the C++ library ruckig.
# Usage: tools/colcon.sh ENVIRONMENT [options for colcon test]; ENVIRONMENT has the library below ruckig/install
set -eo pipefail

cd "$(dirname "$0")/.."
repository=$PWD
environment=$(cd "$1" && pwd)
shift

unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES PYTHONPATH _ROS_WHEELS_BOOTSTRAP_COMPLETE
export VIRTUAL_ENV=$environment PATH=$environment/bin:$PATH
export ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST
export PYTHONWARNINGS="ignore:::setuptools,ignore:::pkg_resources"

if python -c 'from kinopt_msgs.srv import SolveIK' 2>/dev/null; then
    echo "error: $environment contains kinopt_msgs already, so that colcon's build of it would not be tested." >&2
    exit 1
fi

# The two settings that the wheels need and a ROS installation does not.
wheels=(
    "-DCMAKE_PROJECT_INCLUDE=$repository/kinopt_msgs/cmake/pip_build.cmake"
    "-DPython3_EXECUTABLE=$environment/bin/python"
    -GNinja
)

echo "== colcon build and colcon test in the repository"
colcon build --cmake-args "${wheels[@]}"
(
    source install/setup.bash
    python tools/check_install.py "$repository/install"
    colcon test "$@"
    # colcon counts a run that collected no test as passed: the summary must name some.
    colcon test-result --verbose | tee log/test_result.txt
    grep -Eq '^Summary: [1-9][0-9]* tests?' log/test_result.txt || {
        echo "error: colcon test ran no test." >&2
        exit 1
    }
)

echo "== colcon build in a workspace"
workspace=$(mktemp -d)
trap 'rm -rf "$workspace"' EXIT
mkdir "$workspace/src"
# The tracked and new files, without what .gitignore names.
mkdir "$workspace/src/kinopt_ros"
git ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' file; do [ -e "$file" ] && printf '%s\0' "$file"; done |
    tar --null --files-from=- --create | tar --extract --directory "$workspace/src/kinopt_ros"
cd "$workspace"
ruckig_DIR=$environment/ruckig/install/lib/cmake/ruckig
pybind11_DIR=$(python -m pybind11 --cmakedir)
export ruckig_DIR pybind11_DIR
colcon build --base-paths src src/kinopt_ros/kinopt_msgs src/kinopt_ros/kinopt_ruckig --cmake-args "${wheels[@]}"
(
    source install/setup.bash
    python src/kinopt_ros/tools/check_install.py "$workspace/install"
    python src/kinopt_ros/tools/check_ruckig.py "$workspace/install"
)
echo "colcon: everything passed"
