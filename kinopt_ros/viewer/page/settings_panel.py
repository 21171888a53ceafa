"""Sliders of the settings of one folder."""

from collections.abc import Callable
from typing import Any

from kinopt_ros.viewer.page.actions import Actions
from kinopt_ros.viewer.settings import SETTINGS, Setting, Settings


class SettingsPanel:
    """Sliders for weights, tolerances and scalings; one button resets all of them."""

    def __init__(
        self,
        server: Any,
        settings: Settings,
        actions: Actions,
        changed: Callable[[], None],
        folders: tuple[str, ...],
    ) -> None:
        self._settings, self._changed = settings, changed
        self._sliders: dict[str, tuple[Setting, Any]] = {}
        for folder in folders:
            with server.gui.add_folder(folder):
                for setting in SETTINGS:
                    if setting.folder == folder:
                        self._add(server, setting, actions)
        server.gui.add_button("Reset all of these", icon="rotate-2").on_click(actions.guarded(self._reset))

    def _add(self, server: Any, setting: Setting, actions: Actions) -> None:
        unit = setting.unit
        slider = server.gui.add_slider(
            setting.label,
            setting.minimum / unit,
            setting.maximum / unit,
            setting.step / unit,
            self._settings[setting.name] / unit,
            hint=f"{setting.name}, default {setting.default / unit:g}",
        )

        def set_it(event: Any) -> None:
            self._settings.set(setting.name, float(event.target.value) * unit)
            self._changed()

        slider.on_update(actions.guarded(set_it))
        self._sliders[setting.name] = setting, slider

    def _reset(self, _: Any) -> None:
        for name, (setting, slider) in self._sliders.items():
            self._settings.set(name, setting.default)
            slider.value = setting.default / setting.unit
        self._changed()
