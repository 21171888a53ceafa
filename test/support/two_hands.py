"""An arm with two hands in a plane, quick to compile for."""


def arm_text() -> str:
    """Return the URDF of an arm of three joints about z with two hands, one of them behind a fourth joint."""
    limit = '<limit lower="-2.5" upper="2.5" velocity="2" effort="1"/>'
    joints = [
        ("j0", "revolute", "l0", "l1", "0"),
        ("j1", "revolute", "l1", "l2", "0.4"),
        ("j2", "revolute", "l2", "l3", "0.4"),
        ("tool", "fixed", "l3", "hand", "0.2"),
        ("j3", "revolute", "l1", "l5", "0.3"),
        ("other_tool", "fixed", "l5", "other_hand", "0.4"),
    ]
    links = "".join(f'<link name="{link}"/>' for link in ("l0", *(child for _, _, _, child, _ in joints)))
    body = "".join(
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{x} 0 0"/><axis xyz="0 0 1"/>{limit if kind == "revolute" else ""}</joint>'
        for name, kind, parent, child, x in joints
    )
    return f'<robot name="two_hands">{links}{body}</robot>'
