"""The request, to be copied."""

from collections.abc import Callable
from functools import partial
from typing import Any

from kinopt_ros.viewer.page.actions import Actions
from kinopt_ros.viewer.request_text import as_python, as_service_call
from kinopt_ros.viewer.session import Session


class RequestPanel:
    """Buttons that write the request, as it is, where it can be marked and copied."""

    def __init__(
        self, server: Any, session: Session, actions: Actions, source: str, srdf: str | None
    ) -> None:
        gui = server.gui
        call = gui.add_button("As ros2 service call", icon="terminal-2")
        python = gui.add_button("As Python", icon="brand-python")
        self._text = gui.add_markdown("")

        def written(text: Callable[[], str], language: str) -> Callable[[Any], None]:
            def write(_: Any) -> None:
                self._text.content = f"```{language}\n{text()}\n```"

            return write

        call.on_click(actions.guarded(written(partial(as_service_call, session), "bash")))
        python.on_click(actions.guarded(written(partial(as_python, session, source, srdf=srdf), "python")))
