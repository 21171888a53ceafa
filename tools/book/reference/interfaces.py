"""Messages, services and actions of kinopt_msgs, as their files have them."""

from book.repository import ROOT

_KINDS = {"srv": "Services", "action": "Actions", "msg": "Messages"}


def interfaces() -> str:
    """Return every file, comments and all: they are its documentation."""
    parts = []
    for kind, title in _KINDS.items():
        parts.append(f"## {title}\n")
        for file in sorted((ROOT / "kinopt_msgs" / kind).glob(f"*.{kind}")):
            text = file.read_text(encoding="utf-8").rstrip()
            parts.append(f"### {file.stem}\n\n`kinopt_msgs/{kind}/{file.stem}`\n\n```text\n{text}\n```\n")
    return "\n".join(parts)
