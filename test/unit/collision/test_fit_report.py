"""Tests of what `kinopt doctor --collision` reports."""

import dataclasses

import numpy as np
import pytest

from kinopt_ros.collision.pairs import checked_pairs
from kinopt_ros.collision.spheres import robot_spheres
from kinopt_ros.geometry.spheres import SphereSet
from kinopt_ros.robot.urdf import robot_from_urdf

pytest.importorskip("coal")

from kinopt_ros.collision.fit_report import report_fit


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "report"))


def collision(shape, at="0 0 0"):
    return f'<collision><origin xyz="{at}"/><geometry>{shape}</geometry></collision>'


BALL = '<sphere radius="0.1"/>'
URDF = f"""<robot name="r">
<link name="a">{collision('<box size="0.2 0.2 0.2"/>')}{collision('<box size="0.1 0.1 0.1"/>')}</link>
<link name="b"/>
<link name="c">{collision(BALL, "0 0 0.12")}</link>
<link name="d">{collision('<mesh filename="package://nowhere/d.stl"/>')}{collision(BALL, "0.5 0 0.12")}</link>
<link name="e">{collision('<mesh filename="package://nowhere/e.stl"/>')}</link>
<joint name="1" type="prismatic"><parent link="a"/><child link="b"/><origin xyz="0 0 1"/><axis xyz="0 0 1"/>
  <limit lower="-1" upper="0" velocity="1" effort="1"/></joint>
<joint name="2" type="fixed"><parent link="b"/><child link="e"/></joint>
<joint name="3" type="revolute"><parent link="e"/><child link="c"/><axis xyz="0 0 1"/>
  <limit lower="-3" upper="3" velocity="1" effort="1"/></joint>
<joint name="4" type="fixed"><parent link="c"/><child link="d"/></joint>
</robot>"""
# c slides from 1.12 down to 0.12 m above a: the last 0.08 m of 1 m touch. d is at its side, clear of a.
DISABLED = '<robot name="r"><disable_collisions link1="a" link2="c"/></robot>'


def findings(report):
    return [(found.first, found.second, found.what) for found in report.suspicious]


def test_links_are_told_with_their_volumes_and_what_is_missing():
    robot = robot_from_urdf(URDF)
    report = report_fit(robot, robot_spheres(robot, most=1))
    by_name = {fit.link: fit for fit in report.links}
    assert set(by_name) == {"a", "c", "d", "e"}
    assert by_name["a"].shapes == "2 boxes"
    assert by_name["a"].spheres == 1
    assert by_name["a"].volume_ratio == pytest.approx(4 / 3 * np.pi * 0.03**1.5 / 0.008, rel=0.03)
    assert by_name["c"].volume_ratio == pytest.approx(1.0, abs=0.001)
    assert all(fit.uncovered == 0 for fit in report.links)
    assert (by_name["d"].shapes, by_name["d"].source) == ("1 sphere", "fit")
    assert "'nowhere'" in by_name["d"].unchecked
    assert (by_name["e"].shapes, by_name["e"].spheres, by_name["e"].volume_ratio) == ("", 0, None)
    assert "'nowhere'" in by_name["e"].unchecked


def test_given_spheres_that_leave_something_out():
    robot = robot_from_urdf(URDF)
    given = {"c": SphereSet(np.array([[0.0, 0.0, 0.17]]), np.array([0.1]))}
    fit = next(fit for fit in report_fit(robot, robot_spheres(robot, given)).links if fit.link == "c")
    assert fit.source == "file"
    assert fit.uncovered == pytest.approx(0.625 * fit.points, rel=0.1)


@pytest.mark.parametrize(
    ("upper", "what", "least", "most"),
    [
        ("0", "is in collision at the default configuration, and checked", 0.1, 0.2),
        ("3", "is in collision at the default configuration, and checked", 0.02, 0.1),
    ],
)
def test_pairs_that_touch_at_the_default_configuration(upper, what, least, most):
    robot = robot_from_urdf(URDF.replace('upper="0"', f'upper="{upper}"'))
    low = dataclasses.replace(robot, default_q=np.array([-1.0, 0.0]))
    report = report_fit(low, robot_spheres(low))
    assert findings(report) == [("a", "c", what)]
    assert least < report.suspicious[0].share < most


def test_disabled_pairs_that_do_collide():
    robot = robot_from_urdf(URDF, DISABLED)
    report = report_fit(robot, robot_spheres(robot))
    assert findings(report) == [("a", "c", "is disabled in the SRDF, but does collide")]
    assert report.excluded == (("disabled in the SRDF", 1), ("no joint between them moves", 1))
    assert report.checked == 1


@pytest.mark.parametrize(
    ("srdf", "what"),
    [
        (
            DISABLED.replace('"c"', '"d"'),
            "is always in collision, but checked: every configuration will be refused",
        ),
        (None, "is not checked, since it is in collision in nearly every state"),
    ],
)
def test_pairs_that_always_collide(srdf, what):
    robot = robot_from_urdf(URDF.replace('lower="-1" upper="0"', 'lower="-1" upper="-0.99"'), srdf)
    assert findings(report_fit(robot, robot_spheres(robot))) == [("a", "c", what)]


def test_lines_for_an_srdf():
    """Pairs that a person must decide on are comments: pasted whole, the lines exclude what is excluded now."""
    robot = robot_from_urdf(URDF.replace('upper="0"', 'upper="3"'))
    low = dataclasses.replace(robot, default_q=np.array([-1.0, 0.0]))
    lines = report_fit(low, robot_spheres(low)).srdf
    assert any(
        line.startswith('<disable_collisions link1="c" link2="d" reason="Adjacent"/>') for line in lines
    )
    comment = '<!-- <disable_collisions link1="a" link2="c" reason="Default"/> only if they touch by design'
    assert [line.startswith(comment) and "also at the default" in line for line in lines].count(True) == 1
    with_srdf = robot_from_urdf(URDF, f'<robot name="r">{"".join(lines)}</robot>')
    assert with_srdf.disabled_collisions == {frozenset(pair) for pair in checked_pairs(low).excluded}
    assert report_fit(with_srdf, robot_spheres(with_srdf)).srdf == ()
