"""kinopt bench growth: what is measured, and what is said of it."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("coal")
from kinopt_ros.bench.growth import series
from kinopt_ros.bench.growth.series import Cost, Plan, Series
from kinopt_ros.cli import main
from kinopt_ros.geometry.shapes import Box, PointCloud
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.verification.collision import check_collisions

SMALL = Plan(
    obstacles=(1, 8),
    points=(200, 400),
    joints=(7, 9),
    spheres=(3, 6),
    batches=(1, 5),
    threads=(1,),
    requests=3,
)


def test_the_power_by_which_a_cost_grows() -> None:
    costs = [Cost(size, 2e-6 * size**1.5, 0.0, 0.0, 1.0) for size in (1, 10, 1000)]
    np.testing.assert_allclose(Series("boxes", "a check", tuple(costs)).exponents, [1.5, 1.5])


@pytest.mark.parametrize("name", series.SERIES)
def test_each_series_measures_every_size(name: str) -> None:
    told: list[str] = []
    found = list(series.SERIES[name](SMALL, lambda what, count: told.extend([what] * count)))
    assert len(told) == series.steps(SMALL, [name])
    assert found
    for one in found:
        assert len(one.costs) == 2
        for cost in one.costs:
            assert 0.0 < cost.median <= cost.p95
            assert cost.wall > 0.0
            assert cost.solved == 1.0 or not one.exact
            assert cost.solved > 0.5
    things = {one.thing for one in found}
    if name in ("obstacles", "points"):
        assert {"the first look at a new scene", "check of one configuration", "motion"} < things
    if name == "spheres":
        assert {"inverse kinematics", "motion"} < things
        assert all(one.costs[0].size < one.costs[1].size for one in found)


def test_scenes_have_what_they_say_and_leave_room() -> None:
    robot = load_robot("panda")
    prepare_collisions(robot)
    for count in (1, 30):
        scene = series._boxes(count, np.random.default_rng(count))
        edges = [placed.shapes[0].shape for placed in scene.objects.values()]
        assert all(isinstance(shape, Box) for shape in edges)
        volume = sum(shape.x**3 for shape in edges if isinstance(shape, Box))
        assert volume == pytest.approx(series.EDGE**3)
    cloud = series._cloud(500, np.random.default_rng(0))
    shape = cloud.objects["cloud"].shapes[0].shape
    assert isinstance(shape, PointCloud)
    assert len(shape.points) == 500
    q = series.random_configurations(robot, 200, 0)
    assert 0.1 < check_collisions(robot, cloud, q).free.mean() < 0.9


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "growth.png"
    command = ["bench", "growth", "--of", "joints,batch", "--most", "10", "--requests", "2", "--json"]
    assert main([*command, "--plot", str(picture)]) == 0
    record = json.loads(capsys.readouterr().out)
    assert {one["of"] for one in record["series"]} == {"joints", "targets in one call"}
    assert record["machine"]["cores"] >= 1
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(command[:-1]) == 0
    assert "grows by power" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--of", "stars"], "stars"),
        (["--of", ","], "allowed are obstacles"),
        (["--requests", "0"], "--requests is 0"),
        (["--seed", "-1"], "--seed is -1"),
        (["--of", "joints", "--most", "5"], "nothing is left of joints"),
        (["--of", "batch", "--most", "0"], "nothing is left of batch"),
    ],
)
def test_bad_arguments_are_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "growth", *arguments]) == 1
    assert words in capsys.readouterr().err
