"""Messages of any size."""

import pytest
from geometry_msgs.msg import Pose
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

from kinopt_msgs.srv import SolveIK
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.ros.messages.sizes import MOST_LISTED, check_lengths, let_go


def test_a_refused_message_is_emptied_in_pieces() -> None:
    request = SolveIK.Request(poses=[Pose() for _ in range(2500)], tip_links=["a"], seeds=[1.0])
    let_go(request)
    assert request.poses == []
    assert request.tip_links == []
    assert list(request.seeds) == [1.0]  # an array, which goes at once


def test_lists_of_nested_messages_too() -> None:
    request = SolveIK.Request(state=JointState(name=["a"] * 2500, position=[0.0] * 2500))
    let_go(request)
    assert request.state.name == []


def test_what_is_too_long_is_named_with_what_is_allowed() -> None:
    poses = SolveIK.Request(poses=[Pose()] * (MOST_LISTED + 1))
    with pytest.raises(InvalidRequestError, match=r"10001 poses were given; allowed are at most 10000$"):
        check_lengths(poses, 100)
    with pytest.raises(InvalidRequestError, match=r"at most 10000 \(parameter max_batch\)"):
        check_lengths(poses, 10_000)
    check_lengths(poses, 20_000)
    names = SolveIK.Request(state=JointState(name=["a"] * (MOST_LISTED + 1)))
    with pytest.raises(InvalidRequestError, match="10001 name were given"):
        check_lengths(names, 1)


def test_arrays_of_numbers_may_be_long() -> None:
    check_lengths(SolveIK.Request(seeds=[0.0] * 100_000), 1)
    received = deserialize_message(serialize_message(SolveIK.Request(seeds=[0.0] * 100_000)), SolveIK.Request)
    check_lengths(received, 1)
