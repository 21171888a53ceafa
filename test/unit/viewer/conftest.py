"""A session of the bundled arm, ready, one for all tests of a file; each test gets it as it was at first."""

from collections.abc import Iterator

import pytest

import kinopt_ros as ko
from kinopt_ros.viewer.obstacles import Obstacles
from kinopt_ros.viewer.session import Session


@pytest.fixture(scope="module")
def prepared() -> Iterator[Session]:
    session = Session(ko.load_robot("panda"))
    session.prepare()
    yield session
    session.close()


@pytest.fixture
def session(prepared: Session) -> Session:
    prepared.settings.reset()
    prepared.obstacles = Obstacles(prepared.robot, ko.EMPTY_SCENE)
    prepared.avoid_collisions, prepared.nearest, prepared.moves_robot = True, False, True
    prepared.choose_group("panda_arm")
    prepared.go_to_state("panda_arm/ready")
    return prepared
