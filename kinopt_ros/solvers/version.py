"""Version of the plugins that come with the package: the package's own."""

from importlib.metadata import PackageNotFoundError, version


def package_version() -> str:
    """Return the version of the installed package; ``unknown`` where it runs from its sources."""
    try:
        return version("kinopt_ros")
    except PackageNotFoundError:
        return "unknown"
