"""A real browser for tests and pictures: Debian's Chromium, driven by playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np

SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""WebGL without a graphics card, and nothing of the browser's own that asks other machines."""


def chromium() -> str | None:
    """Return the program, if there is one."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


def missing() -> str:
    """Return what is missing for tests in a browser; empty if nothing is."""
    if find_spec("viser") is None:
        return "viser is not installed: pip install 'kinopt_ros[view]'"
    if find_spec("playwright") is None:
        return "playwright is not installed: pip install playwright"
    if chromium() is None:
        return "there is no Chromium: apt-get install chromium"
    return ""


@contextmanager
def browser() -> Iterator[Any]:
    """Start Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=list(SWITCHES), headless=True)
        try:
            yield started
        finally:
            started.close()


def on_screen(server: Any, point: Any) -> tuple[float, float]:
    """Return where a point of the scene is in the picture of the only client, in pixels of its canvas."""
    (client,) = server.get_clients().values()
    camera = client.camera
    forward = np.asarray(camera.look_at) - np.asarray(camera.position)
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, camera.up_direction)
    right /= np.linalg.norm(right)
    seen = np.asarray(point) - np.asarray(camera.position)
    scale = camera.image_height / 2.0 / np.tan(camera.fov / 2.0) / (seen @ forward)
    x = camera.image_width / 2.0 + scale * (seen @ right)
    y = camera.image_height / 2.0 - scale * (seen @ np.cross(right, forward))
    return float(x), float(y)
