"""The viewer's page in a real browser: drawn, dragged by the mouse, planned, played, lost and found again."""

import io
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support.browser import browser, missing, on_screen

why = missing()
if why:
    pytest.skip(why, allow_module_level=True)

from PIL import Image

import kinopt_ros as ko
from kinopt_ros.viewer.page.gizmos import pose_of
from kinopt_ros.viewer.page.page import FOLLOW, GOAL, Page
from kinopt_ros.viewer.server import url_of

pytestmark = [pytest.mark.slow, pytest.mark.browser]
TIP = "panda_link8"
SOLVING = 2.0
"""Time to solve, s: the browser may take all of the machine."""
PATIENCE = 120_000
"""ms; a browser without a graphics card on a busy machine."""


@pytest.fixture(scope="module")
def page(page: Page) -> Page:
    """The page, with time enough to solve."""
    page.session.settings.set("timeout", SOLVING)
    return page


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def tab(page: Page, chromium: Any) -> Iterator[Any]:
    tab = opened(page, chromium)
    yield tab
    tab.close()


def opened(page: Page, chromium: Any) -> Any:
    """Open the page in a window of its own."""
    before = len(page.server.get_clients())
    tab = chromium.new_page(viewport={"width": 1000, "height": 640})
    tab.set_default_timeout(PATIENCE)
    tab.goto(url_of(page.server))
    tab.get_by_text("clearance").first.wait_for()
    until(lambda: len(page.server.get_clients()) == before + 1)
    return tab


def until(true: Callable[[], bool], seconds: float = PATIENCE / 1e3) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never was"
        time.sleep(0.05)


def settled(tab: Any) -> None:
    """Wait until the browser has drawn what it knows."""
    tab.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def pixels(tab: Any) -> np.ndarray:
    settled(tab)
    return np.asarray(Image.open(io.BytesIO(tab.screenshot(timeout=PATIENCE))).convert("RGB"), dtype=int)


def drag_tip(page: Page, tab: Any, distance: float) -> None:
    """Drag the gizmo along its blue axis by the mouse."""
    T = page.session.targets[TIP]
    grip = T[:3, 3] + 0.9 * page._gizmos._scale * T[:3, 2]
    drag(page, tab, grip, grip + distance * T[:3, 2])


def drag(page: Page, tab: Any, grip: np.ndarray, to: np.ndarray) -> None:
    """Drag what is at a point of the root link to another one by the mouse, m."""
    begin, end = (np.array(on_screen(page.server, point)) for point in (grip, to))
    tab.mouse.move(*begin)
    settled(tab)
    tab.mouse.move(*(begin + 1.0))
    settled(tab)
    tab.mouse.down()
    for part in np.linspace(0.0, 1.0, 8):
        tab.mouse.move(*(begin + part * (end - begin)))
        settled(tab)
    tab.mouse.up()


def press(tab: Any, label: str) -> None:
    tab.get_by_role("button", name=label, exact=True).click()


def open_tab(tab: Any, label: str) -> None:
    tab.get_by_role("tab", name=label).click()


def test_the_robot_is_drawn(page: Page, tab: Any) -> None:
    drawn = pixels(tab)
    for frame in page._robot._frames:
        frame.visible = False
    until(lambda: (np.abs(pixels(tab) - drawn).max(axis=-1) > 10).sum() > 1000)
    hidden = pixels(tab)
    for frame in page._robot._frames:
        frame.visible = True
    until(lambda: (np.abs(pixels(tab) - hidden).max(axis=-1) > 10).sum() > 1000)
    for T in ko.forward_kinematics(page.session.robot, page.session.q, links=["panda_link1", "panda_link4"]):
        x, y = (round(v) for v in on_screen(page.server, T[:3, 3]))
        around = np.abs(drawn - hidden)[y - 4 : y + 5, x - 4 : x + 5].max(axis=-1)
        assert (around > 0).mean() > 0.8  # a light robot before a light ground


def test_dragging_the_gizmo_by_the_mouse_moves_the_robot(page: Page, tab: Any) -> None:
    before, shown = page.session.targets[TIP], pixels(tab)
    drag_tip(page, tab, 0.1)
    until(lambda: page.session.targets[TIP][2, 3] < before[2, 3] - 0.05)
    assert page.wait(60.0)
    solution = page.session.solution
    assert solution is not None
    assert solution.found
    assert solution.position_error <= page.session.settings["position_tolerance"]
    assert solution.orientation_error <= page.session.settings["orientation_tolerance"]
    reached = ko.forward_kinematics(page.session.robot, page.session.q, links=[TIP])[0, :3, 3]
    assert reached == pytest.approx(page.session.targets[TIP][:3, 3], abs=1e-4)
    tab.get_by_text("Solved").first.wait_for()
    assert (np.abs(pixels(tab)[:, :600] - shown[:, :600]).max(axis=-1) > 20).sum() > 500


def test_a_weight_changes_the_next_solution(page: Page, tab: Any) -> None:
    T = page.session.targets[TIP].copy()
    T[:3, 3] += 0.5, 0.0, 0.4
    page.session.set_target(TIP, T)
    page.session.nearest = True
    page.solve()
    assert page.wait(60.0)
    before = page.session.solution
    assert before is not None
    open_tab(tab, "Weights")
    field = tab.locator("input[type=text], input[inputmode]").filter(visible=True)
    label = tab.get_by_text("angle, 1/rad")
    label.scroll_into_view_if_needed()
    box = label.bounding_box()
    assert box is not None
    fields = [one for one in field.all() if (at := one.bounding_box()) and abs(at["y"] - box["y"]) < 25]
    fields[-1].fill("50")
    fields[-1].press("Enter")
    until(lambda: page.session.settings["orientation_weight"] == 50.0)
    assert page.wait(60.0)
    after = page.session.solution
    assert after is not None
    assert after.orientation_error < 0.5 * before.orientation_error
    page.session.nearest = False
    page.session.settings.reset()
    page.session.settings.set("timeout", SOLVING)
    page.session.go_to_state("panda_arm/ready")
    page._moved_by_hand()
    assert page.wait(60.0)
    open_tab(tab, "Solve")


def test_a_plan_is_made_and_played(page: Page, tab: Any) -> None:
    page.session.moves_robot = False
    T = page.session.targets[TIP].copy()
    T[:3, 3] += 0.0, 0.3, 0.0
    page.session.set_target(TIP, T)
    open_tab(tab, "Plan")
    press(tab, "Plan to the gizmo")
    tab.get_by_text("Verified motion").first.wait_for()
    until(lambda: page.plan.is_playing)
    until(lambda: not page.plan.is_playing)
    motion = page.session.motion
    assert motion is not None
    assert page.plan._time.value == pytest.approx(motion.duration)
    press(tab, "Put the robot at the end")
    until(lambda: bool((page.session.q == motion.at(motion.duration)).all()))
    page.session.moves_robot = True
    open_tab(tab, "Solve")


def test_an_obstacle_dragged_into_the_way_changes_the_plan(page: Page, tab: Any) -> None:
    session = page.session
    session.go_to_state("panda_arm/ready")
    page.set_mode(GOAL)
    start = session.q
    session.set_variable("panda_joint1", 1.2)
    goal = session.targets[TIP]
    session.set_q(start)
    session.set_target(TIP, goal)
    id = session.obstacles.add("sphere", (0.12, 0.12, 0.12), (0.6, -0.4, 0.6))
    page._draw()
    page.obstacles.show()
    page.solve()
    page.plan.plan()
    assert page.plan.wait(120.0), page.plan.said
    free = session.motion
    assert free is not None
    until(lambda: not page.plan.is_playing)
    middle = ko.forward_kinematics(session.robot, free.at(free.duration / 2), links=[TIP])[0, :3, 3]
    gizmo = page.obstacles._handles[id][0]
    gizmo.position = (float(middle[0]), float(middle[1]), float(middle[2]) + 0.2)
    session.obstacles.move(id, pose_of(gizmo))
    page.obstacles._changed()
    assert "The scene has changed" in page.plan.said
    assert page.wait(60.0)
    settled(tab)
    grip = np.asarray(gizmo.position) + np.array([0.0, 0.0, 0.9 * 0.15])
    drag(page, tab, grip, grip - np.array([0.0, 0.0, 0.2]))
    until(lambda: session.obstacles.scene.objects[id].T_root_object[2, 3] < middle[2] + 0.05)
    last = -1.0

    def stands() -> bool:  # the browser has told all of the drag
        nonlocal last
        before, last = last, session.obstacles.scene.version
        time.sleep(1.0)
        return before == last == session.obstacles.scene.version

    until(stands)
    page.plan.plan()
    assert page.plan.wait(120.0), page.plan.said
    around = session.motion
    assert around is not None, page.plan.said
    assert around.problem.scene is session.obstacles.scene
    assert around.result.length > 1.005 * free.result.length
    until(lambda: not page.plan.is_playing)
    session.obstacles.remove(id)
    page.obstacles.show()
    page.set_mode(FOLLOW)


def test_two_browsers_see_the_same_and_a_lost_connection_comes_back(
    page: Page, chromium: Any, tab: Any
) -> None:
    page.session.go_to_state("panda_arm/ready")
    page._moved_by_hand()
    other = opened(page, chromium)
    assert len(page.server.get_clients()) == 2
    other.close()
    until(lambda: len(page.server.get_clients()) == 1)
    lost = set(page.server.get_clients())
    page.server._websock_server.disconnect_all_clients()
    until(lambda: bool(set(page.server.get_clients()) - lost) and len(page.server.get_clients()) == 1)
    settled(tab)
    before = page.session.targets[TIP][2, 3]
    drag_tip(page, tab, 0.1)
    until(lambda: page.session.targets[TIP][2, 3] < before - 0.05)
