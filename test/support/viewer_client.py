"""A client of the viewer's page that is no browser: it speaks viser's protocol over a websocket."""

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec.msgpack
import numpy as np
import viser
import zstandard
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect


class ViewerClient:
    """One connection. Not thread-safe, but sending and receiving may go on in two threads."""

    def __init__(self, url: str, **options: Any) -> None:
        self.connection = connect(
            url.replace("http://", "ws://"),
            subprotocols=[f"viser-v{viser.__version__}"],  # type: ignore[list-item]
            max_size=None,
            **options,
        )
        self._zstd = zstandard.ZstdDecompressor()
        with suppress(ConnectionClosed):  # whoever is refused may know already
            self._look()

    def _look(self) -> None:
        """Say where the camera is: who has said this counts among viser's clients."""
        self.send(
            "ViewerCameraMessage",
            wxyz=(1.0, 0.0, 0.0, 0.0),
            position=(2.0, 0.0, 1.0),
            fov=1.0,
            near=0.01,
            far=100.0,
            image_height=640,
            image_width=1000,
            look_at=(0.0, 0.0, 0.0),
            up_direction=(0.0, 0.0, 1.0),
        )

    def send(self, kind: str, **fields: Any) -> None:
        """Send a message of viser's."""
        self.connection.send(msgspec.msgpack.encode({"type": kind, **fields}))

    def drag(self, position: Any, wxyz: Any = (1.0, 0.0, 0.0, 0.0), name: str = "/gizmo/0") -> None:
        """Drag a gizmo."""
        numbers = [float(v) for v in position]
        self.send(
            "TransformControlsUpdateMessage",
            name=name,
            wxyz=[float(v) for v in wxyz],
            position=numbers,
            owner="",
        )

    def messages(self, seconds: float) -> Iterator[dict[str, Any]]:
        """Yield what comes within a time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            try:
                raw = self.connection.recv(timeout=left)
            except TimeoutError:
                return
            assert isinstance(raw, bytes)
            packed = int.from_bytes(raw[8:16], "little")
            yield from msgspec.msgpack.decode(self._zstd.decompress(raw[16 : 16 + packed]))["messages"]

    def wait_for(self, kind: str, seconds: float = 20.0, **fields: Any) -> dict[str, Any] | None:
        """Return the next message of a kind with these fields; None if none comes."""
        for message in self.messages(seconds):
            if message["type"] == kind and all(message.get(key) == value for key, value in fields.items()):
                return message
        return None

    def is_closed(self, seconds: float = 10.0) -> bool:
        """Return whether the server closes the connection within a time."""
        try:
            for _ in self.messages(seconds):
                pass
        except ConnectionClosed:
            return True
        return False

    def close(self) -> None:
        """End the connection."""
        self.connection.close()


def shown_positions(client: ViewerClient, name: str, seconds: float) -> Iterator[tuple[float, np.ndarray]]:
    """Yield when (time.monotonic()) and where a node of the scene was put."""
    for message in client.messages(seconds):
        if message["type"] == "SetPositionMessage" and message["name"] == name:
            yield time.monotonic(), np.array(message["position"])
