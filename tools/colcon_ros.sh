#!/usr/bin/env bash
# Builds and tests the packages with an installed ROS, as docs/install.md says: rosdep and colcon alone make motions. The tests
# then get what rosdep does not know from a virtual environment of the workspace.
# Usage: tools/colcon_ros.sh WORKSPACE, which has the clone in src/kinopt_ros
set -eo pipefail

cd "${1:?a workspace with the clone in src/kinopt_ros}"
distributions=(/opt/ros/*/setup.bash)
[ -e "${distributions[0]}" ] || { echo "error: there is no ROS below /opt/ros" >&2; exit 1; }
source "${distributions[0]}"
export ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST

apt-get update
apt-get install --yes --no-install-recommends python3-venv
rosdep update --rosdistro "$ROS_DISTRO"
rosdep install --yes --from-paths src src/kinopt_ros/kinopt_msgs src/kinopt_ros/kinopt_ruckig --ignore-src
colcon build --base-paths src src/kinopt_ros/kinopt_msgs src/kinopt_ros/kinopt_ruckig
source install/setup.bash
python3 src/kinopt_ros/tools/check_install.py "$PWD/install"
python3 src/kinopt_ros/tools/check_ruckig.py "$PWD/install"

python3 -m venv --system-site-packages venv
touch venv/COLCON_IGNORE
source venv/bin/activate
pip install trimesh
# By the environment's Python: the command colcon runs tests with its own.
python -m colcon test --base-paths src src/kinopt_ros/kinopt_msgs src/kinopt_ros/kinopt_ruckig
colcon test-result --verbose
