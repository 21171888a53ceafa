"""How often tests repeat what each time says the same again: seldom in the suite, as often as was once shown with
``KINOPT_THOROUGH=1``."""

import os

THOROUGH = os.environ.get("KINOPT_THOROUGH", "") not in ("", "0")


def times(usually: int, thoroughly: int) -> int:
    """Return the number of repetitions."""
    return thoroughly if THOROUGH else usually
