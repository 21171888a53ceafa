"""The marker of a tip: answers that come after something else was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from geometry_msgs.msg import Pose
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import kinopt_ros as ko
from kinopt_ros.ros.messages.robot_markers import robot_drawing
from kinopt_ros.ros.robot.marker_tips import Mode
from kinopt_ros.ros.rviz.tip import PERIOD, Bench, Settings, TipMarker
from kinopt_ros.status import Status

PANDA = ko.load_robot("panda")
DRAWING = robot_drawing(PANDA)


class Asked:
    """Remembers requests, which are answered when a test wants that."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, Any]] = []

    def ask(self, request: Any, answered: Any) -> None:
        self.asked.append((request, answered))


class World:
    """The marker of the Panda's tip, and what it asks and draws."""

    def __init__(self, avoid: bool = True) -> None:
        state = SimpleNamespace(q=PANDA.default_q, known=np.ones(PANDA.nq, dtype=bool))
        context: Any = SimpleNamespace(
            joint_states=SimpleNamespace(of=lambda robot: state),
            scene=SimpleNamespace(of=lambda robot: None),
            parameter=lambda name: 0.0,
        )
        self.solving, self.planning, self.settings = Asked(), Asked(), Settings(avoid=avoid)
        self.drawn: dict[str, Sequence[Any]] = {}
        look: Any = SimpleNamespace(markers=DRAWING.markers)
        self.look = look
        drawing: Any = SimpleNamespace(draw=self.drawn.update)
        solving: Any = self.solving
        planning: Any = self.planning
        bench = Bench(
            context, self.settings, drawing, solving, planning, lambda *_: None, lambda sentence: None
        )
        loaded: Any = SimpleNamespace(model=PANDA)
        self.tip = TipMarker(bench, loaded, "panda_link8", "panda_arm", Mode.POSE, look)

    def ghost(self) -> Sequence[Any]:
        return self.drawn.get("ghost/panda_link8", ())

    def text(self) -> str:
        return " ".join(marker.text for marker in self.drawn.get("text/panda_link8", ()))

    def solved(self, number: int = -1) -> None:
        """Answer a request for a solution, by default the last one."""
        answer = SimpleNamespace(
            status=SimpleNamespace(code=Status.SUCCESS.value, message=""),
            positions=PANDA.default_q[:7].tolist(),
            position_errors=[0.0],
            orientation_errors=[0.0],
            solver_used="cpu",
            solve_time=1e-3,
        )
        problem = SimpleNamespace(state=PANDA.default_q[None], variables=np.arange(7))
        self.solving.asked[number][1](answer, SimpleNamespace(problem=problem))

    def solve_again(self) -> bool:
        """Whether the next answer is drawn."""
        self.tip._began = -PERIOD
        self.tip.solve()
        self.solved()
        return bool(self.ghost())

    def offers(self) -> bool:
        """Whether rviz shows a plan that can be executed: its text, and its way, always together."""
        said = self.text().startswith("planned")
        assert said == bool(self.drawn.get("way/panda_link8"))
        return said

    def planned(self, number: int = -1, code: Status = Status.SUCCESS) -> None:
        """Answer a request for a plan, by default the last one."""
        points = [JointTrajectoryPoint(positions=PANDA.default_q[:7].tolist()) for _ in range(2)]
        points[1].time_from_start.sec = 1
        answer = SimpleNamespace(
            status=SimpleNamespace(code=code.value, message=""),
            trajectory=JointTrajectory(joint_names=list(self.tip.joints), points=points),
        )
        self.planning.asked[number][1](
            answer, SimpleNamespace(problem=SimpleNamespace(start=PANDA.default_q))
        )


def test_a_plan_that_ignores_collisions_is_not_offered_once_they_are_to_be_avoided() -> None:
    world = World(avoid=False)
    world.tip.go_to_state(world.tip.states[0])
    world.tip.plan()
    assert world.planning.asked[0][0].ignore_collisions
    world.settings.avoid = True  # as the menu does, while it is planned
    world.tip.go_on_later()
    world.planned()
    assert world.tip.take_motion() is None
    world.tip.go_on()  # planned again, as the menu says now
    assert not world.planning.asked[1][0].ignore_collisions
    world.planned()
    assert world.tip.take_motion() is not None


def test_an_answer_that_comes_after_the_way_back_to_the_robot_draws_nothing() -> None:
    world = World()
    world.tip.move(Pose())
    world.tip.reset()
    world.solved()
    assert not world.ghost()
    assert not world.text()


def test_nor_does_one_that_is_being_drawn_meanwhile() -> None:
    world = World()

    def markers(q: Any, painted: Any) -> Any:
        world.tip.reset()  # another thread does so at this moment
        return DRAWING.markers(q, painted)

    world.look.markers = markers
    world.tip.move(Pose())
    world.solved()
    assert not world.ghost()
    assert not world.text()
    world.look.markers = DRAWING.markers
    assert world.solve_again()  # it goes on


def test_a_random_configuration_that_is_found_late_does_not_undo_a_drag() -> None:
    world = World(avoid=False)
    asked = world.tip.changes
    world.tip.go_anywhere(asked)
    assert world.text() == "a random configuration"
    shown, asked = world.ghost(), world.tip.changes
    pose = Pose()
    world.tip.move(pose)
    world.tip.go_anywhere(asked)
    assert world.tip.pose is pose
    assert world.ghost() is shown
    world.solved()
    assert world.text().startswith("cpu")


def test_a_plan_that_comes_after_the_way_back_to_the_robot_is_none() -> None:
    world = World()
    world.tip.go_to_state(world.tip.states[0])
    world.tip.plan()
    assert "planning" in world.text()
    world.tip.reset()
    world.planned()
    assert world.tip.take_motion() is None
    assert not world.drawn["way/panda_link8"]
    assert not world.text()


@pytest.mark.parametrize("when", ["while it is planned", "afterwards"])
def test_a_plan_to_a_named_state_is_made_again_when_the_scene_changes(when: str) -> None:
    world = World()
    world.tip.go_to_state(world.tip.states[0])
    ghost = world.ghost()
    world.tip.plan()
    if when == "afterwards":
        world.planned()
        assert world.drawn["way/panda_link8"]
    world.tip.go_on_later()
    if when == "while it is planned":
        world.planned()
    assert not world.drawn["way/panda_link8"]
    assert world.tip.take_motion() is None
    world.tip.go_on()
    assert len(world.planning.asked) == 2
    assert not world.solving.asked  # the state is the goal, not its pose
    assert world.ghost() is ghost
    world.planned()
    assert world.drawn["way/panda_link8"]
    assert world.tip.take_motion() is not None
    world.tip.go_on_later()  # nothing is planned: nothing is planned anew
    world.tip.go_on()
    assert len(world.planning.asked) == 2


@pytest.mark.parametrize("how", ["the scene changes", "the target moves", "it fails when made again"])
def test_nothing_offers_a_plan_that_cannot_be_executed(how: str) -> None:
    """The text said "planned" until the next plan was begun: who chose "execute" then was told that there is none."""
    world = World()
    world.tip.go_to_state(world.tip.states[0])
    world.tip.plan()
    assert not world.offers()
    world.planned()
    assert world.offers()
    match how:
        case "the scene changes":
            world.tip.go_on_later()
            assert "planning again" in world.text()
        case "the target moves":
            world.tip.move(Pose())
        case _:
            world.tip.plan()
            world.planned(code=Status.PLANNING_FAILED)
            assert "no plan" in world.text()
    assert not world.offers()
    assert world.tip.take_motion() is None


def test_a_plan_that_is_asked_for_twice_is_made_once() -> None:
    world = World()
    world.tip.go_to_state(world.tip.states[0])
    world.tip.plan()
    world.tip.plan()
    world.planned()
    world.tip.go_on()
    assert len(world.planning.asked) == 1
    assert world.tip.take_motion() is not None


def test_an_answer_that_cannot_be_drawn_does_not_end_the_tip() -> None:
    world = World()

    def broken(q: Any, painted: Any) -> Any:
        raise ValueError("no mesh")

    world.tip.move(Pose())
    world.look.markers = broken
    with pytest.raises(ValueError, match="no mesh"):
        world.solved()
    world.look.markers = DRAWING.markers
    assert world.solve_again()


def test_what_ended_leaves_a_newer_plan() -> None:
    world = World()
    world.tip.go_to_state(world.tip.states[0])
    world.tip.plan()
    world.planned()
    assert world.tip.take_motion() is not None
    world.tip.plan()
    world.planned()
    way = world.drawn["way/panda_link8"]
    world.tip.ended(ended())
    assert world.drawn["way/panda_link8"] is way
    assert world.tip.take_motion() is not None
    world.tip.ended(ended())
    assert not world.drawn["way/panda_link8"]
    assert world.text() == "done"


def ended() -> Any:
    return SimpleNamespace(code=Status.SUCCESS.value, message="")
