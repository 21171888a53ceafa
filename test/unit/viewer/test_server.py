"""The page's server: where it listens, who may talk to it, and what it makes of messages that are none."""

import gc
import os
import re
import socket
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser", reason="viser is not installed: pip install 'kinopt_ros[view]'")
import msgspec.msgpack
from support.process_size import size_of
from support.viewer_client import ViewerClient
from websockets.exceptions import ConnectionClosed

import kinopt_ros as ko
from kinopt_ros.errors import InvalidRequestError, MissingPackageError
from kinopt_ros.geometry.shapes import Cylinder, PlacedShape
from kinopt_ros.kinematics.se3 import matrix_to_quaternion
from kinopt_ros.scene import changes
from kinopt_ros.scene.files import save_scene
from kinopt_ros.viewer.incoming import _Uploads
from kinopt_ros.viewer.page.page import Page
from kinopt_ros.viewer.server import PortInUseError, is_own_page, start_server, url_of

TIP = "panda_link8"


@pytest.fixture
def client(page: Page) -> Iterator[ViewerClient]:
    client = ViewerClient(url_of(page.server))
    assert client.wait_for("ReplayDoneMessage") is not None
    yield client
    client.close()


def dragged(page: Page, client: ViewerClient, by: tuple[float, float, float]) -> np.ndarray:
    T = page.session.targets[TIP].copy()
    T[:3, 3] += by
    client.drag(T[:3, 3], matrix_to_quaternion(T[:3, :3]))
    return np.asarray(T[:3, 3])


def until(true: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never was"
        time.sleep(0.02)


def listening(pid: int) -> set[str]:
    """Return the addresses, as the kernel writes them, at which a process listens by TCP."""
    own = {os.readlink(file) for file in Path(f"/proc/{pid}/fd").iterdir() if file.is_symlink()}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in own:
                found.add(words[1].split(":")[0])
    return found


def test_it_listens_on_this_machine_only(page: Page) -> None:
    assert listening(os.getpid()) == {"0100007F"}  # 127.0.0.1
    assert url_of(page.server).startswith("http://127.0.0.1:")


def test_the_page_is_served_and_asks_nobody_else(page: Page) -> None:
    html = urllib.request.urlopen(url_of(page.server), timeout=20.0).read().decode()
    assert "<html" in html
    assert not re.findall(r"<(?:script|link)[^>]+(?:src|href)=[\"']?https?://", html)


def test_a_dragged_gizmo_moves_the_drawn_robot(page: Page, client: ViewerClient) -> None:
    wanted = dragged(page, client, (0.0, 0.1, 0.05))
    assert client.wait_for("SetPositionMessage", name="/robot/8") is not None
    assert page.wait(20.0)
    reached = ko.forward_kinematics(page.session.robot, page.session.q, links=[TIP])[0, :3, 3]
    assert reached == pytest.approx(wanted, abs=1e-4)
    assert page.status.content.startswith("**Solved**")


def test_two_see_the_same(page: Page, client: ViewerClient) -> None:
    other = ViewerClient(url_of(page.server))
    assert other.wait_for("ReplayDoneMessage") is not None
    dragged(page, client, (0.0, -0.05, 0.0))
    assert other.wait_for("SetPositionMessage", name="/robot/8") is not None
    other.close()


def test_who_comes_back_sees_what_was_moved_meanwhile(page: Page) -> None:
    first = ViewerClient(url_of(page.server))
    assert first.wait_for("ReplayDoneMessage") is not None
    wanted = dragged(page, first, (0.02, 0.0, 0.03))
    assert first.wait_for("SetPositionMessage", name="/robot/8") is not None
    first.close()
    again = ViewerClient(url_of(page.server))
    seen = [m for m in again.messages(3.0) if m["type"] == "SetPositionMessage" and m["name"] == "/gizmo/0"]
    assert seen[-1]["position"] == pytest.approx(wanted, abs=1e-6)
    again.close()


MALFORMED = {
    "text": "hello",
    "nothing": b"",
    "noise": np.random.default_rng(0).bytes(1000),
    "no mapping": msgspec.msgpack.encode([1, 2, 3]),
    "no type": msgspec.msgpack.encode({"name": "/gizmo/0"}),
    "unknown type": msgspec.msgpack.encode({"type": "MakeCoffeeMessage"}),
    "missing fields": msgspec.msgpack.encode({"type": "TransformControlsUpdateMessage"}),
    "unknown name": msgspec.msgpack.encode(
        {
            "type": "TransformControlsUpdateMessage",
            "name": "/nobody",
            "wxyz": [1, 0, 0, 0],
            "position": [0, 0, 0],
        }
    ),
    "words for numbers": msgspec.msgpack.encode(
        {
            "type": "TransformControlsUpdateMessage",
            "name": "/gizmo/0",
            "wxyz": ["a"] * 4,
            "position": ["b"] * 3,
        }
    ),
    "too few numbers": msgspec.msgpack.encode(
        {"type": "TransformControlsUpdateMessage", "name": "/gizmo/0", "wxyz": [1], "position": [0, 0]}
    ),
    "not a number": msgspec.msgpack.encode(
        {
            "type": "TransformControlsUpdateMessage",
            "name": "/gizmo/0",
            "wxyz": [float("nan")] * 4,
            "position": [float("inf")] * 3,
        }
    ),
    "nested deeply": msgspec.msgpack.encode(
        {"type": "GuiUpdateMessage", "uuid": "nobody", "updates": {"value": [[[[[[[[[[[1]]]]]]]]]]]}}
    ),
    "many numbers": msgspec.msgpack.encode(
        {
            "type": "TransformControlsUpdateMessage",
            "name": "/gizmo/0",
            "wxyz": [1.0] * 100_000,
            "position": [0.0] * 3,
        }
    ),
    "no control of that name": msgspec.msgpack.encode(
        {"type": "GuiUpdateMessage", "uuid": "nobody", "updates": {"value": 1}}
    ),
}


@pytest.mark.filterwarnings("ignore:.*does not match annotation")
@pytest.mark.parametrize("kind", MALFORMED)
def test_malformed_messages_stop_nobody(
    page: Page, kind: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """viser wrote the lines of its code for each of them."""
    targets = page.session.targets[TIP]
    bad = ViewerClient(url_of(page.server))
    for _ in range(5):
        try:
            bad.connection.send(MALFORMED[kind])
        except ConnectionClosed:
            break
    good = ViewerClient(url_of(page.server))
    assert good.wait_for("ReplayDoneMessage") is not None
    assert (page.session.targets[TIP] == targets).all()
    dragged(page, good, (0.0, 0.005, 0.0))
    assert good.wait_for("SetPositionMessage", name="/robot/8") is not None
    good.close()
    bad.close()
    gc.collect()  # a task that has failed says so when it goes
    until(lambda: not page.server._websock_server._live_connections)
    assert not [record for record in caplog.records if record.exc_info]
    assert "Traceback" not in capfd.readouterr().err


def sent_and_refused(client: ViewerClient, *messages: bytes) -> str:
    """Why a client was disconnected that sent some messages."""
    with suppress(ConnectionClosed):
        for message in messages:
            client.connection.send(message)
    assert client.is_closed(60.0)
    assert client.connection.protocol.close_rcvd is not None
    return client.connection.protocol.close_rcvd.reason


def test_what_a_browser_sends_is_bounded(page: Page) -> None:
    """Texts of 2 MB were kept and sent on: the process grew by 180 MB."""

    def update(value: object) -> bytes:
        return msgspec.msgpack.encode(
            {"type": "GuiUpdateMessage", "uuid": page.mode._impl.uuid, "updates": {"value": value}}
        )

    before = page.mode.value
    for value, why in (
        ("x" * 1001, "allowed are 1000"),
        (b"x" * 1001, "allowed are 1000"),
        ([0] * 1001, "more than 1000 values"),
    ):
        assert why in sent_and_refused(ViewerClient(url_of(page.server)), update(value))
    other = {"type": "GuiUpdateMessage", "uuid": page.mode._impl.uuid, "updates": {"update_cb": "x"}}
    why = sent_and_refused(ViewerClient(url_of(page.server)), msgspec.msgpack.encode(other))
    assert "a value alone" in why
    watcher = ViewerClient(url_of(page.server))
    assert watcher.wait_for("ReplayDoneMessage") is not None
    gc.collect()
    grown = size_of(os.getpid())[0]
    for letter in "abcdefghij":
        sent_and_refused(ViewerClient(url_of(page.server)), update(letter * 2_000_000))
    assert size_of(os.getpid())[0] - grown < 30.0  # MB
    watcher.close()
    assert page.mode.value == before


def upload(control: Any, number: int, parts: int) -> bytes:
    """The begin of a file for a control."""
    return msgspec.msgpack.encode(
        {
            "type": "FileTransferStartUpload",
            "source_component_uuid": control._impl.uuid,
            "transfer_uuid": f"t{number}",
            "filename": "scene.yaml",
            "mime_type": "",
            "part_count": parts,
            "size_bytes": parts,
        }
    )


def part_of_upload(control: Any, number: int, content: bytes) -> bytes:
    """Its first part."""
    return msgspec.msgpack.encode(
        {
            "type": "FileTransferPart",
            "source_component_uuid": control._impl.uuid,
            "transfer_uuid": f"t{number}",
            "part_index": 0,
            "content": content,
        }
    )


def test_a_file_for_a_control_that_takes_none_is_refused(page: Page) -> None:
    """viser made it the value of a slider, which no answer could move from then on, in any browser."""
    before = page.mode.value
    for messages in (
        (upload(page.mode, 0, 1), part_of_upload(page.mode, 0, b"x")),
        (upload(page.obstacles._load, 1, 1), part_of_upload(page.mode, 1, b"x")),
    ):
        assert "files go to" in sent_and_refused(ViewerClient(url_of(page.server)), *messages)
    assert page.mode.value == before


def test_files_that_are_never_complete_are_bounded(page: Page, client: ViewerClient) -> None:
    load, content = page.obstacles._load, b"x" * 500_000
    many = (
        message
        for number in range(40)
        for message in (upload(load, number, 9), part_of_upload(load, number, content))
    )
    assert "bytes of files" in sent_and_refused(client, *many)
    until(lambda: not page.server.gui._current_file_upload_states)


def test_a_part_that_comes_twice_counts_once() -> None:
    """viser drops the second one, and keeps the first."""
    uploads = _Uploads()
    for number in range(40):
        name = f"t{number}"
        uploads.take({"type": "FileTransferStartUpload", "transfer_uuid": name, "part_count": 2})
        part = {"type": "FileTransferPart", "transfer_uuid": name, "part_index": 0, "content": b"x" * 500_000}
        fits = uploads.take(part)
        assert fits == uploads.take({**part, "content": b""}) == uploads.take({**part, "part_index": 7})
        assert fits == (number < 33)  # 16 MiB
    uploads = _Uploads()
    for number in range(2000):
        start = {"type": "FileTransferStartUpload", "transfer_uuid": f"t{number}", "part_count": 1}
        assert uploads.take(start)
        assert uploads.take(
            {"type": "FileTransferPart", "transfer_uuid": f"t{number}", "part_index": 0, "content": b"x"}
        )


def test_many_messages_leave_the_newest(page: Page, client: ViewerClient) -> None:
    T = page.session.targets[TIP].copy()
    wxyz = matrix_to_quaternion(T[:3, :3])
    for k in range(5_000):
        client.drag(T[:3, 3] + [0.0, 0.02 * np.sin(k / 50.0), 0.0], wxyz)
    client.drag(T[:3, 3] + [0.01, 0.0, 0.0], wxyz)
    for _ in range(600):
        for _ in client.messages(0.1):
            pass
        if page.session.targets[TIP][0, 3] == pytest.approx(T[0, 3] + 0.01, abs=1e-9) and page.wait(0.0):
            break
    reached = ko.forward_kinematics(page.session.robot, page.session.q, links=[TIP])[0, :3, 3]
    assert reached == pytest.approx(T[:3, 3] + [0.01, 0.0, 0.0], abs=1e-4)


def test_an_obstacle_that_is_dragged_nowhere_goes_back(page: Page, client: ViewerClient) -> None:
    obstacles = page.session.obstacles
    id = obstacles.add("box", (0.1, 0.1, 0.1), (0.0, 0.9, 0.2))
    page.obstacles.show()
    gizmo = page.obstacles._handles[id][0]
    for bad in (float("nan"), 1e300):
        client.drag((bad, 0.0, 0.0), name=gizmo.name)
        until(lambda: page.status.content.startswith("**") and "pose" in page.status.content)
        until(lambda: tuple(gizmo.position) == (0.0, 0.9, 0.2))
        page.status.content = ""
        assert obstacles.scene.objects[id].T_root_object[1, 3] == 0.9
    client.drag((0.0, 0.8, 0.2), name=gizmo.name)
    until(lambda: obstacles.scene.objects[id].T_root_object[1, 3] == 0.8)
    obstacles.remove(id)
    page.obstacles.show()


def test_what_the_robot_carries_is_drawn_and_moves_with_it(
    page: Page, client: ViewerClient, tmp_path: Path
) -> None:
    obstacles, robot = page.session.obstacles, page.session.robot
    T_link_object = np.eye(4)
    T_link_object[2, 3] = 0.1
    cup = (PlacedShape(Cylinder(0.04, 0.1), np.eye(4)),)
    touched = ["panda_hand", "panda_leftfinger", "panda_rightfinger"]
    held = changes.attach_new(obstacles.scene, robot, "cup", cup, TIP, T_link_object, touched)
    save_scene(held, tmp_path / "held.yaml", robot)
    obstacles.load(tmp_path / "held.yaml")
    page.obstacles._changed()
    assert page.wait(20.0)
    (body,) = page._robot._bodies
    frame = page._robot._frames[page._robot._links.index(TIP)]  # of a link without a shape of its own
    assert body.name.startswith(f"{frame.name}/")
    assert tuple(body.position) == (0.0, 0.0, 0.1)
    wanted = dragged(page, client, (0.0, -0.05, 0.02))
    until(lambda: bool(np.abs(np.array(frame.position) - wanted).max() < 1e-4))
    save_scene(ko.EMPTY_SCENE, tmp_path / "none.yaml", robot)
    obstacles.load(tmp_path / "none.yaml")
    page.obstacles._changed()
    assert client.wait_for("RemoveSceneNodeMessage", name=body.name) is not None
    assert not page._robot._bodies


def test_a_plan_of_another_scene_is_not_called_verified(page: Page) -> None:
    session = page.session
    session.moves_robot = False
    page.plan.plan()
    assert page.plan.wait(60.0)
    assert page.plan.said.startswith("**Verified motion**")
    session.obstacles.add("box", (0.1, 0.1, 0.1), (0.0, 0.9, 0.2))
    page.obstacles._changed()
    assert "The scene has changed" in page.plan.said
    page.plan.plan()
    assert page.plan.wait(60.0)
    assert page.plan.said.startswith("**Verified motion**")
    session.moves_robot = True


def test_pages_of_other_sites_are_refused(page: Page) -> None:
    url = url_of(page.server)
    own = ViewerClient(url, origin=url)
    assert own.wait_for("ReplayDoneMessage") is not None
    own.close()
    for origin in ("http://example.com", "http://localhost:1", "null"):
        foreign = ViewerClient(url, origin=origin)
        assert foreign.is_closed(), origin


@pytest.mark.parametrize(
    ("origin", "host", "own"),
    [
        (None, "127.0.0.1:8080", True),
        ("http://127.0.0.1:8080", "127.0.0.1:8080", True),
        ("http://localhost:8080", "localhost:8080", True),
        ("http://[::1]:8080", "[::1]:8080", True),
        ("http://evil.example:8080", "evil.example:8080", False),  # a name that was pointed to this machine
        ("http://evil.example", "127.0.0.1:8080", False),
        ("http://robot.lab:8080", "robot.lab:8080", True),  # the name that --host gave
        ("null", "127.0.0.1:8080", False),
    ],
)
def test_own_pages_are_told_from_others(origin: str | None, host: str, own: bool) -> None:
    headers = {"Host": host} if origin is None else {"Host": host, "Origin": origin}
    assert is_own_page(headers, "robot.lab") is own


def test_headers_that_no_browser_sends_are_not_of_its_own_page() -> None:
    """They left a traceback in the log."""

    class Twice(dict[str, str]):
        def get(self, name: str, default: Any = None) -> Any:
            if name == "Host":
                raise LookupError(name)  # as of websockets
            return super().get(name, default)

    assert not is_own_page(Twice(Origin="http://localhost:8080"), "localhost")
    assert not is_own_page({"Host": "localhost:8080", "Origin": "http://[::1"}, "localhost")


def test_nothing_is_shared_by_others_servers(page: Page, client: ViewerClient) -> None:
    client.send("ShareUrlRequest")
    assert page.server.request_share_url() is None
    assert page.server._share_tunnel is None


def test_a_port_in_use_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            PortInUseError, match=f"port {port} of 127.0.0.1 is in use; name another one by --port"
        ):
            start_server(port=port)


def test_what_is_no_address_is_said() -> None:
    with pytest.raises(InvalidRequestError, match=r"no address 'nowhere.invalid'"):
        start_server("nowhere.invalid", 0)
    with pytest.raises(InvalidRequestError, match=r"cannot listen at '192.0.2.1'"):
        start_server("192.0.2.1", 0)
    with pytest.raises(InvalidRequestError, match=r"allowed is 0 to 65535"):
        start_server(port=70_000)


def test_a_missing_viser_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'kinopt_ros\[view\]'"):
        start_server(port=0)
