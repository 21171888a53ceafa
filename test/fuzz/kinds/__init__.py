"""Kinds of inputs. Each module has ``prepare(folder)``, which makes good inputs and warms up what is called, and
``feed(source, folder)``, which makes one input and gives it to the code that reads such inputs."""

from importlib import import_module
from typing import Any

NAMES = (
    "urdf",
    "srdf",
    "scenes",
    "meshes",
    "records",
    "plans",
    "names",
    "parameters",
    "messages",
    "moveit_scenes",
)


def kind(name: str) -> Any:
    """The module of a kind."""
    return import_module(f"fuzz.kinds.{name}")
