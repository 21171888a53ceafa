"""What browsers send to the page, looked at before viser works on it.

viser takes messages of up to 50 MB, keeps texts of any length, sets any attribute of a control, and writes all lines of
an error where one cannot be used. Who sends what no page of ours sends is disconnected, with a reason; nobody else is.
"""

from collections.abc import Callable
from typing import Any

from kinopt_ros.errors import cut, quoted, said_by

LARGEST_MESSAGE = 2**20
"""Largest message that is read, bytes; the page sends files in parts of half of that."""
LONGEST_TEXT, MOST_VALUES, _DEEPEST = 1000, 1000, 8
"""Longest text of a message, most values in it, and how deeply they may be nested."""
LARGEST_UPLOADS = 16 * 2**20
"""Most bytes of files that one browser is sending, which viser keeps until they are complete."""
_UNUSABLE, _TOO_MUCH = 1007, 1009
"""Codes with which a websocket is closed."""
_POSE = {"wxyz": 4, "position": 3}
"""Fields of messages that are so many numbers; viser keeps whatever comes."""
_PART, _START = "FileTransferPart", "FileTransferStartUpload"


def guard(connection: Any, decode: Callable[[bytes], Any], takes_files: Callable[[Any], bool]) -> None:
    """Have the messages of a connection looked at.

    Args:
        connection: of the package websockets; nothing of it was read yet.
        decode: makes viser's message of one; raises if it is none.
        takes_files: whether the control of a uuid does; one that is gone, too, as viser drops what comes for it.
    """
    from websockets.exceptions import ConnectionClosedError

    # Else the largest that viser allows is put together before it is seen.
    connection.protocol.max_message_size = LARGEST_MESSAGE
    receive, uploads = connection.recv, _Uploads()

    async def recv(*given: Any, **options: Any) -> Any:
        raw = await receive(*given, **options)
        code, wrong = _wrong(raw, decode, takes_files, uploads)
        if wrong:
            # A reason has at most 123 bytes.
            await connection.close(code, cut(wrong, 100).encode("ascii", "replace").decode())
            raise ConnectionClosedError(None, None)
        return raw

    connection.recv = recv


class _Uploads:
    """Files that a browser is sending."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[int, dict[int, int]]] = {}
        """Number of parts, and the bytes of those that came, by the upload's name."""

    def take(self, message: dict[str, Any]) -> bool:
        """Take notice of a message; False if it is one of too much."""
        name = str(message.get("transfer_uuid"))
        if message["type"] == _START:
            if int(message["part_count"]) > 0:
                self._open[name] = int(message["part_count"]), {}
        elif name in self._open:
            count, parts = self._open[name]
            index = int(message["part_index"])
            if 0 <= index < count:  # viser drops others, and those that came before
                parts.setdefault(index, len(message["content"]))
            if len(parts) == count:
                del self._open[name]
        kept = sum(sum(parts.values()) for _, parts in self._open.values())
        return len(self._open) <= MOST_VALUES and kept <= LARGEST_UPLOADS


def _wrong(
    raw: Any, decode: Callable[[bytes], Any], takes_files: Callable[[Any], bool], uploads: _Uploads
) -> tuple[int, str]:
    """Return with which code and why a message is refused; an empty reason if it is not."""
    import msgspec.msgpack

    if not isinstance(raw, bytes):
        return _UNUSABLE, "a text is no message"
    try:
        message = msgspec.msgpack.decode(raw)
        kind = message["type"]
        _count(message, _DEEPEST, LARGEST_MESSAGE if kind == _PART else LONGEST_TEXT)
        if kind == "GuiUpdateMessage" and set(message["updates"]) != {"value"}:
            return _UNUSABLE, "a control has a value alone"
        for name, length in _POSE.items():
            numbers = message.get(name, [0.0] * length)
            if len(numbers) != length or not all(isinstance(one, int | float) for one in numbers):
                return _UNUSABLE, f"{name} is {length} numbers"
        decode(raw)
        if kind in (_START, _PART) and not takes_files(message["source_component_uuid"]):
            # viser makes it the value of any control, which takes no other from then on.
            return _UNUSABLE, "files go to the buttons that take them"
        if kind in (_START, _PART) and not uploads.take(message):
            return _TOO_MUCH, f"at most {LARGEST_UPLOADS} bytes of files are taken at a time"
    except TooMuchError as error:
        return _TOO_MUCH, str(error)
    except Exception as error:  # whatever viser makes of it
        return _UNUSABLE, f"this is no message: {said_by(error)}"
    return 0, ""


class TooMuchError(Exception):
    """A message has more than any of the page's."""


def _count(value: Any, deepest: int, longest: int, left: int = MOST_VALUES) -> int:
    """Return how many more values a message may have after one; raise TooMuchError if there are too many."""
    left -= 1
    if isinstance(value, str | bytes):
        most = longest if isinstance(value, bytes) else LONGEST_TEXT
        if len(value) > most:
            raise TooMuchError(f"a value has length {len(value)}; allowed are {most}")
    elif isinstance(value, dict | list):
        if not deepest:
            raise TooMuchError("the message is nested too deeply")
        for one in [*value, *value.values()] if isinstance(value, dict) else value:
            left = _count(one, deepest - 1, longest, left)
    if left < 0:
        raise TooMuchError(f"the message has more than {MOST_VALUES} values")
    return left


def one_line(say: Callable[[str], None]) -> Callable[[Any, dict[str, Any]], None]:
    """Return a handler of errors in an event loop that says each in one line."""

    def handle(loop: Any, context: dict[str, Any]) -> None:
        del loop
        error = context.get("exception")
        why = said_by(error) if error is not None else quoted(str(context.get("message")))
        say(f"a message of a browser could not be used: {why}")

    return handle
