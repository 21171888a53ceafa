"""Tests of the choice of pairs of links that are checked."""

import dataclasses

import numpy as np
import pytest

from kinopt_ros.collision.adjacency import adjacent_pairs, link_pairs, rigid_pairs
from kinopt_ros.collision.pairs import Reason, checked_pairs
from kinopt_ros.robot.sources import find_robot, load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.scene import EMPTY_SCENE
from kinopt_ros.verification.collision import check_collisions

pytest.importorskip("coal")

from kinopt_ros.collision import pair_samples
from kinopt_ros.collision.pair_samples import sample_pairs


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "pairs"))


def link(name, radius=0.1, at="0 0 0"):
    shape = f'<geometry><sphere radius="{radius}"/></geometry>'
    return (
        f'<link name="{name}">'
        + (f'<collision><origin xyz="{at}"/>{shape}</collision>' if radius else "")
        + "</link>"
    )


def joint(parent, child, at="0 0 0", kind="revolute", limit='lower="-3" upper="3"'):
    return (
        f'<joint name="{parent}-{child}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{at}"/><axis xyz="0 0 1"/><limit {limit} velocity="1" effort="1"/></joint>'
    )


def robot_of(*elements, srdf=None):
    text = None if srdf is None else f'<robot name="r">{srdf}</robot>'
    return robot_from_urdf(f'<robot name="r">{"".join(elements)}</robot>', text)


def test_pairs_that_no_joint_moves():
    robot = robot_of(
        link("a"), link("b"), link("c"), link("d", 0), link("e"),
        joint("a", "b", kind="fixed"), joint("b", "c"), joint("c", "d", kind="fixed"), joint("d", "e", kind="fixed"),
    )  # fmt: skip
    assert rigid_pairs(robot) == {("a", "b"), ("c", "e")}
    assert len(link_pairs(robot)) == 6


def test_adjacent_through_links_without_shapes_but_not_between_branches():
    robot = robot_of(
        link("a"), link("hub", 0), link("b"), link("c"), link("d"),
        joint("a", "hub", kind="fixed"), joint("hub", "b"), joint("hub", "c"), joint("c", "d"),
    )  # fmt: skip
    assert adjacent_pairs(robot) == {("a", "b"), ("a", "c"), ("c", "d")}


def test_links_with_several_joints_between_them_that_move_are_not_adjacent():
    """A shoulder whose links between have no shapes can fold the arm onto the body."""
    robot = robot_of(
        link("body", 0.2), link("hub", 0), link("arm", 0.1, "0.4 0 0"),
        joint("body", "hub", "0 0.4 0"), joint("hub", "arm"),
    )  # fmt: skip
    assert adjacent_pairs(robot) == frozenset()
    assert checked_pairs(robot).checked == (("body", "arm"),)


@pytest.mark.parametrize("kind", ["planar", "floating"])
def test_a_joint_that_takes_its_link_anywhere_makes_no_neighbours(kind):
    """Fixed ones before and after it do not, either."""
    robot = robot_of(
        link("floor", 0.2), link("root", 0), link("body", 0.1), link("arm"),
        joint("floor", "root", kind="fixed"), joint("root", "body", kind=kind), joint("body", "arm"),
    )  # fmt: skip
    assert adjacent_pairs(robot) == adjacent_pairs(robot, np.inf) == {("body", "arm")}
    assert ("floor", "body") in checked_pairs(robot).checked
    q = robot.default_q.copy()
    assert not check_collisions(robot, EMPTY_SCENE, q[None]).free.any()
    q[robot.variables_of("root-body")[0]] = 1.0
    assert check_collisions(robot, EMPTY_SCENE, q[None]).free.all()


def test_a_link_whose_shape_is_missing_is_not_passed_over():
    missing = '<link name="m"><collision><geometry><mesh filename="none.stl"/></geometry></collision></link>'
    robot = robot_of(link("a"), missing, link("b"), joint("a", "m"), joint("m", "b"))
    assert adjacent_pairs(robot) == frozenset()


def test_the_srdf_is_taken_at_its_word():
    chain = [link("a"), link("b"), link("c"), link("d"), joint("a", "b"), joint("b", "c"), joint("c", "d")]
    robot = robot_of(*chain, srdf='<disable_collisions link1="d" link2="a"/>')
    pairs = checked_pairs(robot)
    assert pairs.checked == (("a", "c"), ("b", "d"))
    assert pairs.excluded == {
        ("a", "b"): Reason.ADJACENT,
        ("a", "d"): Reason.DISABLED,
        ("b", "c"): Reason.ADJACENT,
        ("c", "d"): Reason.ADJACENT,
    }
    assert pairs.never == frozenset()


SAMPLED = [
    link("base"),
    link("near", 0.1),
    link("always", 0.1, "0 0 0.2"),
    link("rarely", 0.05, "1 0 0"),
    link("far", 0.1),
    link("post", 0.05, "1 0 0.15"),
    joint("base", "near", "0 0 0.15"),
    joint("near", "always"),
    joint("always", "rarely"),
    joint("rarely", "far", "9 9 0"),
    joint("base", "post", kind="fixed"),
]


def test_without_an_srdf_configurations_are_sampled():
    """The link "rarely" turns about the base and meets the post at angle 0, the default; "far" meets nobody."""
    robot = robot_of(*SAMPLED)
    pairs = checked_pairs(robot)
    assert pairs.excluded == {
        ("base", "near"): Reason.ADJACENT,
        ("base", "post"): Reason.RIGID,
        ("near", "always"): Reason.ADJACENT,
        ("always", "rarely"): Reason.ADJACENT,
        ("rarely", "far"): Reason.ADJACENT,
    }
    assert ("rarely", "post") in pairs.checked
    samples = sample_pairs(robot, pairs.checked)
    # Three joints turn it: of the angle's sum the part within 2 asin(0.05) of a whole turn, about evenly.
    assert 0.005 < samples.share["rarely", "post"] < 0.06
    assert samples.at_default == {("rarely", "post")}
    assert pairs.never == set(pairs.checked) - {("rarely", "post")}


def test_pairs_that_always_touch_are_left_out():
    robot = robot_of(
        link("a"), link("b", 0.1, "0 0 0.15"), link("c", 0.1, "0 0 0.19"), joint("a", "b"), joint("b", "c")
    )
    assert checked_pairs(robot).excluded["a", "c"] is Reason.ALWAYS


def two_arms(srdf=None):
    """Two arms of one joint each, on one base; at mid-limits, and in a fifth of all states, one is in the other."""
    return robot_of(
        link("base", 0.05), link("left", 0.1, "0 0.5 0"), link("right", 0.1, "0 -0.5 0"),
        joint("base", "left", "0 -0.5 0", limit='lower="-1" upper="1"'),
        joint("base", "right", "0 0.5 0", limit='lower="-1" upper="1"'),
        srdf=srdf,
    )  # fmt: skip


def test_arms_that_cross_at_mid_limits_and_often_are_checked():
    """Mid-limits is nobody's choice: a motion of one arm through the other was once a success."""
    robot = two_arms()
    pairs = checked_pairs(robot)
    samples = sample_pairs(robot, (("left", "right"),))
    assert samples.at_default == {("left", "right")}
    assert samples.share["left", "right"] > 0.1
    assert ("left", "right") in pairs.checked
    assert pairs.guessed == ()


def test_of_many_shapes_only_those_that_are_near_are_looked_at(monkeypatch):
    """A robot of 2,000 boxes took an hour: every box of a link was compared with all of another one."""
    coal = pair_samples.load_coal()

    class Counting:
        looks = 0

        def __getattr__(self, name):
            return getattr(coal, name)

        def collide(self, *arguments):
            self.looks += 1
            return coal.collide(*arguments)

    counting = Counting()
    monkeypatch.setattr(pair_samples, "load_coal", lambda: counting)

    def ring(name, z):
        tile = '<collision><origin xyz="{x} {y} {z}"/><geometry><box size="0.02 0.02 0.01"/></geometry></collision>'
        places = [(0.3 * np.cos(a), 0.3 * np.sin(a)) for a in np.linspace(0.0, 5.5, 12)]
        return f'<link name="{name}">{"".join(tile.format(x=x, y=y, z=z) for x, y in places)}</link>'

    robot = robot_of(ring("a", 0.0), link("b", 0.05), ring("c", 0.015), joint("a", "b"), joint("b", "c"))
    assert sample_pairs(robot, (("a", "c"),), 100).share == {("a", "c"): 0.0}
    assert 0 < counting.looks < 101 * 30  # of 144 in each configuration


def test_a_pair_that_comes_apart_in_one_of_ten_states_is_checked():
    """MoveIt's setup assistant takes 95 of 100 for always."""

    def slide(reach):
        part = (
            '<joint name="slide" type="prismatic"><parent link="b"/><child link="e"/><axis xyz="0 0 1"/>'
            f'<limit lower="-{reach}" upper="{reach}" velocity="1" effort="1"/></joint>'
        )
        return robot_of(link("a", 0.2), link("b", 0.1, "0 0 5"), link("e", 0.1), joint("a", "b"), part)

    assert checked_pairs(slide(0.301)).guessed == (("a", "e"),)
    pairs = checked_pairs(slide(0.34))  # half of the samples are pushed towards the ends
    assert ("a", "e") in pairs.checked
    assert 0.6 < sample_pairs(slide(0.34), (("a", "e"),)).share["a", "e"] < 0.9


def test_the_same_for_the_same_robot_and_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = checked_pairs(robot_of(*SAMPLED))
    monkeypatch.setattr(pair_samples, "_sampled", None)
    assert checked_pairs(robot_of(*SAMPLED)) == first
    narrow = [part.replace('lower="-3"', 'lower="-2"') for part in SAMPLED]
    with pytest.raises(TypeError, match="not callable"):
        checked_pairs(robot_of(*narrow))


def test_without_shapes_there_are_no_pairs():
    pairs = checked_pairs(robot_of(link("a", 0), link("b", 0), joint("a", "b")))
    assert pairs.checked == ()
    assert pairs.excluded == {}


def unlike_the_srdf(robot):
    """Pairs on which sampling and the SRDF disagree: what never collides, adjacent ones included, ought to be disabled
    in the SRDF, and nothing else."""
    free = dataclasses.replace(robot, disabled_collisions=frozenset())
    pairs = checked_pairs(free)
    unneeded = {frozenset(pair) for pair in (*pairs.excluded, *pairs.never)}
    everything = {frozenset(pair) for pair in link_pairs(robot)}
    disabled = robot.disabled_collisions & everything
    return {tuple(sorted(pair)) for pair in unneeded ^ disabled}


def published(robot, srdf):
    urdf = find_robot(robot)[0]
    return load_robot(urdf, urdf.parent.parent / "srdf" / srdf)


@pytest.mark.peers
def test_sampled_pairs_agree_with_the_published_srdf_of_the_panda():
    folder = find_robot("ur5")[0].parents[2] / "panda_description"
    robot = load_robot(folder / "urdf" / "panda.urdf", folder / "srdf" / "panda.srdf")
    assert unlike_the_srdf(robot) == {
        # Disabled there as "Default", although they collide in one of ten configurations or more.
        ("panda_hand", "panda_link5"),
        ("panda_link5", "panda_link7"),
        # Disabled there as "Default": the fingers touch when closed.
        ("panda_leftfinger", "panda_rightfinger"),
    }


@pytest.mark.peers
def test_sampled_pairs_agree_with_the_published_srdf_of_the_ur5():
    assert unlike_the_srdf(published("ur5", "ur5.srdf")) == {
        # Disabled there, although they can collide: the meshes touch in 1 to 6 of 100 configurations.
        ("base_link", "upper_arm_link"),
        ("forearm_link", "wrist_2_link"),
        ("forearm_link", "wrist_3_link"),
        # The file does not know ee_link, which is fixed to wrist_3_link.
        ("ee_link", "wrist_1_link"),
        ("ee_link", "wrist_2_link"),
        ("ee_link", "wrist_3_link"),
    }


def test_the_bundled_srdf_disables_nothing_that_collides_but_what_its_readme_names():
    robot = load_robot("panda")
    by_design = rigid_pairs(robot) | adjacent_pairs(robot)
    asked = tuple(
        pair
        for pair in link_pairs(robot)
        if pair not in by_design and frozenset(pair) in robot.disabled_collisions
    )
    share = sample_pairs(robot, asked, 500).share
    assert {pair for pair, value in share.items() if value > 0.0} <= {
        ("panda_link5", "panda_link7"),
        ("panda_leftfinger", "panda_rightfinger"),
    }
    assert np.isclose(share["panda_link5", "panda_link7"], 0.7, atol=0.15)
