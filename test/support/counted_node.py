"""The node, with a line in a file for whatever is compiled: ``python -m support.counted_node FILE [node's words]``."""

import sys
from pathlib import Path

from support.compilations import hear_compilations

from kinopt_ros.ros.main import main

if __name__ == "__main__":
    record = Path(sys.argv.pop(1))

    def said(what: str) -> None:
        with record.open("a", encoding="utf-8") as file:
            file.write(f"{what}\n")

    hear_compilations(said)
    sys.exit(main())
