"""Robots by file and by name."""

import pytest

from kinopt_ros.errors import RobotDescriptionError
from kinopt_ros.robot import sources
from kinopt_ros.robot.sources import load_robot, robot_names


@pytest.fixture
def bundle(tmp_path, monkeypatch, urdf):
    """An assets folder with one robot, and no installed robot packages but one in another folder."""
    folder = tmp_path / "assets" / "toy"
    folder.mkdir(parents=True)
    (folder / "toy.urdf").write_text(urdf("j revolute a b"))
    (folder / "toy.srdf").write_text('<robot name="made"><group name="arm"><joint name="j"/></group></robot>')
    for part, name in (("one", "bot"), ("two", "bot"), ("two", "solo"), ("ur", "ur5_robot")):
        (tmp_path / "robots" / part / "urdf").mkdir(parents=True, exist_ok=True)
        (tmp_path / "robots" / part / "urdf" / f"{name}.urdf").write_text(urdf(f"{name} revolute a b"))
    monkeypatch.setattr(sources, "ASSETS", tmp_path / "assets")
    monkeypatch.setattr(sources, "_package_folders", lambda: iter([tmp_path / "robots"]))
    return tmp_path


def test_bundled_robot_brings_its_srdf(bundle):
    assert list(load_robot("toy").groups) == ["arm"]


def test_srdf_beside_a_file_is_not_picked_up(bundle):
    path = bundle / "assets" / "toy" / "toy.urdf"
    assert list(load_robot(path).groups) == ["b"]
    assert list(load_robot(str(path), path.with_suffix(".srdf")).groups) == ["arm"]


def test_installed_robots_by_name_alias_and_folder(bundle):
    assert load_robot("solo").active_joints == ("solo",)
    assert load_robot("ur5").active_joints == ("ur5_robot",)
    assert load_robot("two/bot").active_joints == ("bot",)
    assert robot_names() == ["toy", "one/bot", "solo", "two/bot", "ur5", "ur5_robot"]


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("nobody", "no robot 'nobody'.*toy, one/bot"),
        ("bot", "several robots 'bot': one/bot, two/bot"),
        ("missing.urdf", "the URDF file 'missing.urdf' cannot be read: No such file"),
        ("../toy", "no robot"),
        ("", "no robot"),
        ("<robot/>", "use robot_from_urdf"),
    ],
)
def test_what_is_not_there(bundle, source, sentence):
    with pytest.raises(RobotDescriptionError, match=sentence):
        load_robot(source)


def test_help_without_robot_packages(bundle, monkeypatch):
    monkeypatch.setattr(sources, "_package_folders", lambda: iter(()))
    with pytest.raises(RobotDescriptionError, match="pip install example-robot-data"):
        load_robot("pr2")


def test_binary_file(bundle):
    (bundle / "x.urdf").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RobotDescriptionError, match="not UTF-8"):
        load_robot(bundle / "x.urdf")


@pytest.mark.peers
@pytest.mark.parametrize(
    "name", ["ur5", "ur10", "kinova", "talos", "tiago", "baxter", "pr2", "g1", "allegro"]
)
def test_names_of_example_robot_data(name):
    pytest.importorskip("pinocchio")
    assert load_robot(name).nq >= 6
