"""The table of costs of docs/objectives.md, from the registry. Run it to print the table."""

from __future__ import annotations

from dataclasses import fields

from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.registry import cost_kind, cost_names

COMMON = {field.name for field in fields(Cost)}


def cost_table() -> str:
    """Rows of all kinds of this package."""
    rows = ["| cost | what it is | residual | units | fields |", "|---|---|---|---|---|"]
    for name in cost_names():
        kind = cost_kind(name)
        if not kind.__module__.startswith("kinopt_ros."):
            continue
        about = (kind.__doc__ or "").strip().splitlines()[0].rstrip(".").replace("``", "`")
        formula = kind.formula.replace("|", "\\|")
        own = ", ".join(f"`{field.name}`" for field in fields(kind) if field.name not in COMMON)
        rows.append(f"| `{name}` | {about} | `{formula}` | {kind.units} | {own} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(cost_table())
