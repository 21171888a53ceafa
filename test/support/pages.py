"""Pages that users read, and messages as their commands have them."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST_COMMANDS = README[README.index("## In ROS") : README.index("## What it does")]


def page(name: str) -> str:
    """A page of docs/."""
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def filled(message: Any, values: dict[str, Any]) -> Any:
    """A message with fields as `ros2 service call` takes them."""
    types = message.get_fields_and_field_types()
    for name, value in values.items():
        assert name in types, f"{type(message).__name__} has no {name}"
        part = getattr(message, name)
        if isinstance(value, dict):
            filled(part, value)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            kind = re.fullmatch(r"sequence<(\w+)/(\w+)(, \d+)?>", types[name])
            assert kind is not None, types[name]
            made = getattr(import_module(f"{kind[1]}.msg"), kind[2])
            setattr(message, name, [filled(made(), one) for one in value])
        else:
            setattr(message, name, value)
    return message
