"""Check for the compiler (numba) of this package's distances."""

from kinopt_ros.errors import MissingPackageError


def require_numba() -> None:
    """Raise ``MissingPackageError`` without numba, which most modules of this package import."""
    try:
        import numba  # noqa: F401
    except ImportError as error:
        raise MissingPackageError("collision checks need the package numba (pip install numba)") from error
