"""Draws the layers as an SVG: ``python -m support.layers_picture FILE``."""

import sys
from pathlib import Path

from support.layers import LAYERS, imports_between_parts

WIDTH, ROW, BOX, TOP = 860, 62, 30, 12
"""Sizes in pixels."""
LETTER = 7.6


def layers_picture() -> str:
    """The picture, as text."""
    imports = imports_between_parts()
    ground = LAYERS[0] & set(imports)
    rows = [sorted(names & set(imports)) for names in reversed(LAYERS[1:])]
    places: dict[str, tuple[float, float, float]] = {}
    for number, names in enumerate(rows):
        widths = [LETTER * len(name) + 28 for name in names]
        free = (WIDTH - sum(widths)) / (len(names) + 1)
        x = 0.0
        for name, width in zip(names, widths, strict=True):
            # Every other row stands aside, so that arrows can pass.
            x += free
            aside = (-1) ** number * 110 if len(names) == 1 else 0
            places[name] = x + aside, TOP + number * ROW, width
            x += width
    height = TOP + len(rows) * ROW + BOX + TOP
    drawn = [_arrow(places[a], places[b]) for a, b in sorted(_needed(imports, set(places)))]
    drawn += [_box(name, *place) for name, place in places.items()]
    y = TOP + len(rows) * ROW
    drawn.append(_box(", ".join(sorted(ground)), 10, y, WIDTH - 20, small=True))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="14">\n'
        '<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#557"/></marker></defs>\n'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>\n' + "\n".join(drawn) + "\n</svg>\n"
    )


def _needed(imports: dict[str, set[str]], drawn: set[str]) -> set[tuple[str, str]]:
    """Imports that do not follow from others."""
    direct = {part: names & drawn for part, names in imports.items() if part in drawn}
    reached: dict[str, set[str]] = {}

    def reach(part: str) -> set[str]:
        if part not in reached:
            reached[part] = set()  # parts of one layer may import each other
            reached[part] = direct[part].union(*(reach(name) for name in direct[part]))
        return reached[part]

    return {
        (part, name)
        for part, names in direct.items()
        for name in names
        if not any(name in reach(other) for other in names - {name})
    }


def _box(name: str, x: float, y: float, width: float, small: bool = False) -> str:
    size = ' font-size="11.5"' if small else ""
    return (
        f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{BOX}" rx="5" fill="#e8eef8" stroke="#557"/>'
        f'<text x="{x + width / 2:.0f}" y="{y + 20}" text-anchor="middle"{size}>{name}</text>'
    )


def _arrow(above: tuple[float, float, float], below: tuple[float, float, float]) -> str:
    x1, y1 = above[0] + above[2] / 2, above[1] + BOX
    x2, y2 = below[0] + below[2] / 2, below[1]
    if y2 < y1:  # beside each other
        y1 = y2 = above[1] + BOX / 2
        x1, x2 = (above[0] + above[2], below[0]) if x1 < x2 else (above[0], below[0] + below[2])
    middle = (y1 + y2) / 2
    return (
        f'<path d="M{x1:.0f} {y1:.0f}C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} {x2:.0f} {y2:.0f}" '
        'fill="none" stroke="#557" marker-end="url(#end)"/>'
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(layers_picture(), encoding="utf-8")
