"""URDF texts for tests."""

from collections.abc import Callable

import pytest

UrdfMaker = Callable[..., str]


def urdf_of(*joints: str, name: str = "made", extra: str = "") -> str:
    """A URDF from lines ``name type parent child [inner XML]``; the links follow from the joints."""
    links: dict[str, None] = {}
    parts = []
    for line in joints:
        joint, kind, parent, child, *inner = line.split(maxsplit=4)
        links.update({parent: None, child: None})
        limit = '<limit lower="-1" upper="1" effort="1" velocity="2"/>'
        body = inner[0] if inner else ""
        if kind in ("revolute", "prismatic") and "<limit" not in body:
            body += limit
        ends = f'<parent link="{parent}"/><child link="{child}"/>'
        parts.append(f'<joint name="{joint}" type="{kind}">{ends}{body}</joint>')
    declared = "".join(f'<link name="{link}"/>' for link in links)
    return f'<robot name="{name}">{"".join(parts)}{declared}{extra}</robot>'


@pytest.fixture
def urdf() -> UrdfMaker:
    """Makes a URDF from lines ``name type parent child [inner XML]``."""
    return urdf_of
