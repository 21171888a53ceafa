"""Descriptions that would take minutes or gigabytes: bounds, with a sentence that names them, and linear work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kinopt_ros.errors import KinoptError, RobotDescriptionError
from kinopt_ros.robot import srdf as srdf_reader
from kinopt_ros.robot.lint.srdf import lint_srdf
from kinopt_ros.robot.lint.urdf import lint_urdf
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.states import named_configuration
from kinopt_ros.robot.urdf import robot_from_urdf


def chain(joints: int) -> str:
    links = "".join(f'<link name="l{i}"/>' for i in range(joints + 1))
    return (
        f'<robot name="r">{links}'
        + "".join(
            f'<joint name="j{i}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/>'
            '<limit lower="-1" upper="1" velocity="1"/></joint>'
            for i in range(joints)
        )
        + "</robot>"
    )


def robot(parts: str) -> str:
    return f'<robot name="r">{parts}</robot>'


GROUP = '<group name="g{i}"><joint name="j0"/></group>'
STATE = '<group_state name="s{i}" group="g0"><joint name="j0" value="0"/></group_state>'
CHAIN = '<group name="g{i}"><chain base_link="l0" tip_link="l1"/></group>'


@pytest.mark.parametrize(
    ("srdf", "sentence"),
    [
        (robot("".join(GROUP.format(i=i) for i in range(100_000))), "100000 <group> elements; at most 1000"),
        (
            robot(GROUP.format(i=0) + "".join(STATE.format(i=i) for i in range(20_000))),
            "20000 <group_state> elements; at most 10000",
        ),
        (
            robot("<group name='g'>" + '<chain base_link="l0" tip_link="l1"/>' * 2_000 + "</group>"),
            "2000 <chain> elements; at most 1000",
        ),
        (robot("<a/>" * 600_000), "600002 tags; at most 500000"),
        (
            robot(f'<group name="{"x" * 10**6}"/>'),
            r"name of <group> in the SRDF is 'x+'... \(1000000 characters\)",
        ),
        (robot(f'<group_state name="{"x" * 10**6}" group="g"/>'), "1000000 characters"),
    ],
    ids=["groups", "states", "chains", "tags", "long group", "long state"],
)
@pytest.mark.timeout(100)
def test_endless_srdfs_are_refused_and_found(srdf: str, sentence: str) -> None:
    with pytest.raises(RobotDescriptionError, match=sentence) as caught:
        robot_from_urdf(chain(3), srdf)
    assert len(str(caught.value)) < 1_000
    findings = lint_srdf(srdf, robot_from_urdf(chain(3)))
    assert len(findings) <= 501
    assert max(len(finding.what) for finding in findings) < 1_000


def test_the_groups_of_a_long_robot_share_a_bound() -> None:
    srdf = robot(
        "".join(f'<group name="g{i}"><chain base_link="l0" tip_link="l1999"/></group>' for i in range(999))
    )
    with pytest.raises(RobotDescriptionError, match="more than 100000 joints in all"):
        robot_from_urdf(chain(1_999), srdf)


def test_states_are_put_together_once_per_group(monkeypatch: pytest.MonkeyPatch) -> None:
    copies = []
    real = srdf_reader.replace
    monkeypatch.setattr(
        srdf_reader, "replace", lambda *args, **kwargs: copies.append(1) or real(*args, **kwargs)
    )
    states = "".join(STATE.format(i=i) for i in range(10_000))
    loaded = robot_from_urdf(chain(3), robot(GROUP.format(i=0) + states))
    assert len(loaded.groups["g0"].states) == 10_000
    assert len(copies) == 2
    with pytest.raises(RobotDescriptionError, match=r"unknown state 'none'; known: .*\(10000 in all\)"):
        named_configuration(loaded, "none")


def test_warnings_about_an_srdf_are_bounded() -> None:
    states = "".join(f'<group_state name="s{i}" group="none"/>' for i in range(9_000))
    warnings = robot_from_urdf(chain(3), robot(states)).warnings
    assert len(warnings) < 300
    assert "more about the SRDF" in warnings[-1]


def test_endless_urdfs_are_refused_and_found() -> None:
    with pytest.raises(RobotDescriptionError, match="20001 links; at most 2000"):
        robot_from_urdf(chain(20_000))
    findings = lint_urdf(chain(20_000))
    assert [finding.what for finding in findings] == ["the URDF has 20001 links; at most 2000 are read"]
    assert "tags; at most" in lint_urdf(robot("<a/>" * 600_000))[0].what


def test_long_names_are_refused_and_not_echoed() -> None:
    for text in (
        chain(2).replace('"j0"', f'"{"j" * 10**6}"'),
        chain(2).replace('parent link="l0"', f'parent link="{"x" * 10**6}"'),
        chain(2).replace('"revolute"', f'"{"x" * 10**6}"', 1),
        chain(2).replace('lower="-1"', f'lower="{"x" * 10**6}"', 1),
        f"<{'x' * 10**6}/>",
        chain(2).replace('"r"', f'"{"x" * 10**6}"'),
    ):
        with pytest.raises(RobotDescriptionError) as caught:
            robot_from_urdf(text)
        assert len(str(caught.value)) < 1_000
        assert all(len(finding.what) < 1_000 for finding in lint_urdf(text))


@pytest.mark.parametrize("offset", ["1e7", "1e16", "1e300"])
def test_mimic_offsets_that_leave_no_digits_are_refused(offset: str) -> None:
    text = chain(2).replace('<limit lower="-1" upper="1" velocity="1"/></joint></robot>',
                            f'<mimic joint="j0" offset="{offset}"/></joint></robot>')  # fmt: skip
    with pytest.raises(RobotDescriptionError, match="joint 'j1' mimics 'j0' with multiplier 1 and offset"):
        robot_from_urdf(text)


@pytest.mark.parametrize(
    "given", ["x" * 300, "x" * 300 + ".urdf", "a\0.urdf", "a\ud800.urdf", "a\ud800", 5, None, b"a"]
)
def test_names_that_no_robot_can_have(given: object) -> None:
    with pytest.raises(RobotDescriptionError) as caught:
        load_robot(given)  # type: ignore[arg-type]
    str(caught.value).encode()
    with pytest.raises(RobotDescriptionError):
        load_robot("panda", srdf=given if given is not None else "")  # type: ignore[arg-type]
    with pytest.raises(KinoptError):
        load_robot("panda").group(given)  # type: ignore[arg-type]


def test_pipes_and_devices_are_no_robots(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.urdf")
    for path, why in (
        (tmp_path / "pipe.urdf", "a pipe"),
        (Path("/dev/zero"), "a device"),
        (tmp_path, "a folder"),
    ):
        with pytest.raises(RobotDescriptionError, match=why):
            load_robot(path)
        with pytest.raises(RobotDescriptionError, match=why):
            load_robot("panda", srdf=path)


def test_a_description_of_the_largest_size_takes_less_than_a_gigabyte() -> None:
    """It is read in a process of its own, which has no more."""
    program = (
        "import resource, sys\n"
        "from kinopt_ros.robot.urdf import robot_from_urdf\n"
        "from kinopt_ros.robot.lint.urdf import lint_urdf\n"
        "pages = int(open('/proc/self/statm').read().split()[0])\n"
        "resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**30,) * 2)\n"
        "text = '<robot name=\"r\">' + '<a b=\"\" c=\"\"/>' * 490_000 + '</robot>'\n"
        "print(lint_urdf(text)[0].what)\n"
        "robot_from_urdf(text)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "RobotDescriptionError: the URDF has no <link>" in ended.stderr
    assert "the URDF has no <link>" in ended.stdout
