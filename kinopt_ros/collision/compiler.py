"""Whether there is a compiler for the distances of this package."""

from kinopt_ros.errors import MissingPackageError


def require_numba() -> None:
    """Raise ``MissingPackageError`` without numba, which most modules of this package import."""
    try:
        import numba  # noqa: F401
    except ImportError as error:
        raise MissingPackageError("collision checks need the package numba (pip install numba)") from error
