"""Pictures of `kinopt view` for docs/viewer.md: the page, moved by its own methods, in Chromium without a screen.

make pictures
"""

import argparse
import io
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from support.browser import browser, missing

import kinopt_ros as ko
from kinopt_ros.viewer.looks import looks_of
from kinopt_ros.viewer.page.page import FOLLOW, GOAL, Page
from kinopt_ros.viewer.server import start_server, url_of
from kinopt_ros.viewer.session import Session

DOCS = Path(__file__).resolve().parent.parent / "docs"
SIZE = {"width": 1180, "height": 720}
LARGEST, LARGEST_MOVING = 300_000, 1_500_000
"""Largest picture, bytes; and one that moves."""
FRAMES, FRAME_MS = 30, 90
"""Frames of the moving picture, and how long each is shown, ms."""
PATIENCE = 180_000
"""ms; a browser without a graphics card on a busy machine."""
TIP = "panda_link8"


def main() -> int:
    """Make all pictures; return 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=DOCS)
    folder = parser.parse_args().folder
    why = missing()
    if why:
        print(f"error: {why}")
        return 1
    robot = ko.load_robot("panda")
    session = Session(robot)
    session.go_to_state("panda_arm/ready")
    page = Page(start_server(port=0), session, looks_of(robot), "panda")
    assert page.wait(800.0)
    try:
        with browser() as started:
            tab = started.new_page(viewport=SIZE)
            tab.set_default_timeout(PATIENCE)
            tab.goto(url_of(page.server))
            tab.get_by_text("clearance").first.wait_for()
            close_warning(tab)
            solved(page, tab, folder / "viewer_solve.png")
            planned(page, tab, folder / "viewer_plan.png")
            refused(page, tab, folder / "viewer_no_solution.png")
    finally:
        page.close()
    return 0


def solved(page: Page, tab: Any, file: Path) -> None:
    """All solutions of a pose."""
    T = page.session.targets[TIP].copy()
    T[:3, 3] += 0.1, 0.15, -0.1
    drag(page, T)
    every = tab.get_by_label("Show all solutions")
    every.check()
    time.sleep(1.0)
    take(page, tab, file)
    every.uncheck()


def planned(page: Page, tab: Any, file: Path) -> None:
    """A motion around an obstacle, half way."""
    session = page.session
    session.go_to_state("panda_arm/ready")
    session.set_variable("panda_joint1", -0.8)
    page._moved_by_hand()
    page.set_mode(GOAL)
    start = session.q
    session.set_variable("panda_joint1", 0.9)
    goal = session.targets[TIP]
    session.set_q(start)
    session.obstacles.add("box", (0.1, 0.06, 0.72), (0.42, 0.0, 0.36))
    session.obstacles.add("sphere", (0.2, 0.2, 0.2), (0.3, -0.45, 0.1))
    page.obstacles.show()
    drag(page, goal)
    tab.get_by_role("tab", name="Plan").click()
    page.plan.plan()
    assert page.plan.wait(120.0), page.plan.said
    assert session.motion is not None, page.plan.said
    while page.plan.is_playing:
        time.sleep(0.1)
    duration = session.motion.duration
    show_at(page, 0.5 * duration)
    take(page, tab, file)
    moving = []
    for t in np.linspace(0.0, duration, FRAMES):
        show_at(page, t)
        moving.append(shot(page, tab))
    save_moving(moving, file.with_suffix(".gif"))


def show_at(page: Page, t: float) -> None:
    """Show the planned motion at a time, s."""
    page.plan._time.value = round(t, 3)
    page.plan._show_at(page.plan._time.value)


def refused(page: Page, tab: Any, file: Path) -> None:
    """A pose inside an obstacle."""
    session = page.session
    page.set_mode(FOLLOW)
    session.go_to_state("panda_arm/ready")
    page._moved_by_hand()
    tab.get_by_role("tab", name="Scene").click()
    T = session.targets[TIP].copy()
    T[:3, 3] = 0.42, 0.0, 0.4
    drag(page, T)
    take(page, tab, file)


def drag(page: Page, T: np.ndarray) -> None:
    """Put the gizmo somewhere, as if it was dragged there."""
    page.session.set_target(TIP, T)
    page._gizmos.show(page.session.targets)
    page.solve()


def close_warning(tab: Any) -> None:
    """Close the browser's remark that it draws without a graphics card."""
    tab.locator(".mantine-Notification-closeButton").first.click()


def take(page: Page, tab: Any, file: Path) -> None:
    """Take a picture once all is drawn."""
    shot(page, tab).quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)
    check_size(file, LARGEST)


def shot(page: Page, tab: Any) -> Image.Image:
    """Return what the page shows once all is drawn."""
    assert page.wait(60.0)
    tab.evaluate("() => document.activeElement?.blur()")
    for _ in range(3):
        tab.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        time.sleep(0.5)
    return Image.open(io.BytesIO(tab.screenshot(timeout=PATIENCE))).convert("RGB")


def save_moving(frames: list[Image.Image], file: Path) -> None:
    """Save a picture that moves for ever, and rests at its end. All frames have the colours of the first one, so that
    what stands still costs nothing."""
    small = [
        frame.resize((SIZE["width"] * 3 // 4, SIZE["height"] * 3 // 4), Image.Resampling.LANCZOS)
        for frame in frames
    ]
    colours = small[len(small) // 2].quantize(128, dither=Image.Dither.NONE)
    first, *others = (frame.quantize(palette=colours, dither=Image.Dither.NONE) for frame in small)
    times = [FRAME_MS] * (len(frames) - 1) + [1500]
    first.save(file, save_all=True, append_images=others, duration=times, loop=0, optimize=True)
    check_size(file, LARGEST_MOVING)


def check_size(file: Path, largest: int) -> None:
    """Say how large a picture is, and fail if that is too much."""
    size = file.stat().st_size
    print(f"{file}: {size / 1000:.0f} kB")
    assert size <= largest, f"{file} has {size} bytes; allowed are {largest}"


if __name__ == "__main__":
    raise SystemExit(main())
