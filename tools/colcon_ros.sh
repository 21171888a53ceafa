#!/usr/bin/env bash
# Builds and tests both packages with an installed ROS, as docs/install.md says. What rosdep does not know goes into a virtual
# environment of the workspace.
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
rosdep install --yes --from-paths src src/kinopt_ros/kinopt_msgs --ignore-src
python3 -m venv --system-site-packages venv
touch venv/COLCON_IGNORE
source venv/bin/activate
pip install numba ruckig transforms3d trimesh
colcon build --base-paths src src/kinopt_ros/kinopt_msgs
source install/setup.bash
python src/kinopt_ros/tools/check_install.py "$PWD/install"
colcon test --base-paths src src/kinopt_ros/kinopt_msgs
colcon test-result --verbose
