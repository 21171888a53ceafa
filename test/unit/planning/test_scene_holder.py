"""The scene in service: all changes of a request or none, versions, many threads, another robot."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from support.scene_holders import serving

from kinopt_ros.errors import EnvironmentChangedError, InvalidRequestError, UnknownObjectError
from kinopt_ros.geometry.shapes import Box, PlacedShape
from kinopt_ros.planning.scene_holder import Change, SceneHolder
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.changes import add, attach_new, remove
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene, SceneObject

PANDA = load_robot("panda")
BARE = robot_from_urdf('<robot name="bare"><link name="panda_link0"/></robot>')
BOX = (PlacedShape(Box(1.0, 1.0, 1.0), np.eye(4)),)


def adding(id: str) -> tuple[str, Change]:
    return f"add {id}", lambda scene: add(scene, PANDA, SceneObject(id, BOX, np.eye(4)))


def test_changes_of_a_request_make_one_version() -> None:
    holder = serving(PANDA, pytest.fail)
    assert holder.of(PANDA).version == 1
    scene = holder.change(PANDA, [adding("a"), adding("b")])
    assert (scene.version, list(scene.objects)) == (2, ["a", "b"])
    assert holder.of(PANDA) is scene


def test_a_refused_change_leaves_the_scene_and_says_which_it_was() -> None:
    holder = serving(PANDA, pytest.fail)
    before = holder.change(PANDA, [adding("a")])
    with pytest.raises(UnknownObjectError, match=r"^remove c: unknown object 'c'"):
        holder.change(PANDA, [adding("b"), ("remove c", lambda scene: remove(scene, "c"))])
    assert holder.of(PANDA) is before


def test_an_unexpected_version_is_refused() -> None:
    holder = serving(PANDA, pytest.fail)
    holder.change(PANDA, [adding("a")], expected_version=1)
    with pytest.raises(InvalidRequestError, match="expected_version is 1; the scene has version 2"):
        holder.change(PANDA, [adding("b")], expected_version=1)
    assert list(holder.of(PANDA).objects) == ["a"]


def test_changes_of_many_threads_all_count() -> None:
    holder = serving(PANDA, pytest.fail)

    def work(number: int) -> None:
        for i in range(20):
            holder.change(PANDA, [adding(f"{number} {i}")])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    scene = holder.of(PANDA)
    assert (scene.version, len(scene.objects)) == (81, 80)


def test_another_robot_keeps_obstacles_and_says_what_is_lost() -> None:
    said: list[str] = []
    holder = serving(PANDA, said.append)

    def attaching(scene: Scene) -> Scene:
        return attach_new(scene, PANDA, "mug", BOX, "panda_hand", np.eye(4))

    before = holder.change(PANDA, [adding("table"), ("attach", attaching)])
    same = replace(PANDA)
    holder.serve(same)
    assert holder.of(same) is before
    holder.serve(BARE)
    after = holder.of(BARE)
    assert (list(after.objects), list(after.attached), after.version) == (["table"], [], 3)
    assert any("'mug' was dropped" in sentence for sentence in said)
    assert holder.of(BARE) is after


def test_a_first_scene_is_taken_once_and_never_in_place_of_changes() -> None:
    holder = SceneHolder(pytest.fail)
    first = add(EMPTY_SCENE, PANDA, SceneObject("floor", BOX, np.eye(4)))
    holder.start(lambda: first)
    holder.serve(PANDA)
    assert holder.of(PANDA) is first
    holder.start(lambda: pytest.fail("made again"))
    assert holder.of(PANDA) is first


def test_who_is_still_at_work_when_all_is_forgotten_keeps_no_first_scene_away() -> None:
    """A look at the scene, for the robot of before, put that back: then the next one began without its obstacles."""
    holder = SceneHolder(pytest.fail)
    first = add(EMPTY_SCENE, PANDA, SceneObject("floor", BOX, np.eye(4)))
    holder.start(lambda: first)
    holder.serve(PANDA)
    version = holder.change(PANDA, [adding("box")]).version
    holder.forget()
    assert not holder.of(PANDA).objects
    with pytest.raises(EnvironmentChangedError, match="taken out of service"):
        holder.change(PANDA, [adding("cloud")])
    again = replace(PANDA)
    holder.start(lambda: EMPTY_SCENE)  # for a robot that never came
    holder.start(lambda: first)
    holder.serve(again)
    assert list(holder.of(again).objects) == ["floor"]
    assert holder.of(again).version > version


def test_who_asks_does_not_wait_for_who_changes() -> None:
    holder = serving(PANDA, pytest.fail)
    before = holder.of(PANDA)
    begun, go_on = threading.Event(), threading.Event()

    def slow(scene: Scene) -> Scene:
        begun.set()
        assert go_on.wait(30.0)
        return add(scene, PANDA, SceneObject("slow", BOX, np.eye(4)))

    changer = threading.Thread(target=lambda: holder.change(PANDA, [("slow", slow)]))
    changer.start()
    assert begun.wait(30.0)
    asked = []
    asker = threading.Thread(target=lambda: asked.append(holder.of(PANDA)))
    asker.start()
    asker.join(10.0)
    assert asked == [before]
    go_on.set()
    changer.join(30.0)
    assert list(holder.of(PANDA).objects) == ["slow"]


def test_a_robot_that_comes_during_a_change_refuses_it() -> None:
    holder = serving(PANDA, pytest.fail)
    before = holder.change(PANDA, [adding("box")])

    def interrupted(scene: Scene) -> Scene:
        holder.serve(BARE)
        return add(scene, PANDA, SceneObject("other", BOX, np.eye(4)))

    with pytest.raises(
        EnvironmentChangedError,
        match=r"replaced, or taken out of service, while .* send the changes again",
    ):
        holder.change(PANDA, [("interrupted", interrupted)])
    assert holder.of(BARE) is before


@pytest.mark.parametrize("was_asked_for", [True, False])
def test_requests_that_took_an_earlier_robot_lose_nothing_of_the_scene(was_asked_for: bool) -> None:
    said: list[str] = []
    holder = SceneHolder(said.append)
    holder.serve(BARE)
    if was_asked_for:
        holder.change(
            BARE, [("add table", lambda scene: add(scene, BARE, SceneObject("table", BOX, np.eye(4))))]
        )
    holder.serve(PANDA)

    def attaching(scene: Scene) -> Scene:
        return attach_new(scene, PANDA, "mug", BOX, "panda_hand", np.eye(4))

    confirmed = holder.change(PANDA, [("attach", attaching)])
    view = holder.of(BARE)
    assert (view.objects, list(view.attached)) == (confirmed.objects, [])
    assert view.version == confirmed.version
    assert not said
    with pytest.raises(EnvironmentChangedError):
        holder.change(BARE, [("add", lambda scene: add(scene, BARE, SceneObject("box", BOX, np.eye(4))))])
    assert holder.while_it_is(BARE, view, lambda: pytest.fail("another robot is in service")) is None
    assert holder.of(PANDA) is confirmed
    assert holder.while_it_is(PANDA, confirmed, lambda: "done") == "done"


def test_a_first_scene_of_a_robot_that_never_serves_locks_nobody_out() -> None:
    """The file's scene comes before the robot serves."""
    holder = SceneHolder(pytest.fail)
    first = add(EMPTY_SCENE, PANDA, SceneObject("floor", BOX, np.eye(4)))
    holder.serve(BARE)
    holder.start(lambda: pytest.fail("begun already"))
    assert list(holder.change(BARE, [("nothing", lambda scene: scene)]).objects) == []
    other = SceneHolder(pytest.fail)
    other.start(lambda: first)
    other.serve(BARE)
    assert list(other.change(BARE, [("nothing", lambda scene: scene)]).objects) == ["floor"]
