"""kinopt bench mobile: a base that moves brings every pose within reach."""

import argparse
import json

import pytest

pytest.importorskip("numba")
from kinopt_ros.bench import mobile
from kinopt_ros.bench.hjcd.fetch import fetch
from kinopt_ros.errors import InvalidRequestError


def test_a_fetch_on_a_base_reaches_what_it_does_not_reach_standing_still() -> None:
    static, planar, floating = mobile.run_mobile_bench(fetch(), "wrist_roll_link", 100, seed=0)
    assert (static.base, planar.base, floating.base) == ("static", "planar", "floating")
    assert static.solved < 0.6
    assert static.position_mean_m > 0.05
    for row in (planar, floating):
        assert row.solved == 1.0
        assert row.position_mean_m < 1e-5
        assert row.orientation_mean_rad < 1e-4


def test_json_and_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    mobile.add_arguments(parser)
    assert mobile.main(parser.parse_args(["--robot", "panda", "--poses", "5", "--json"])) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["tip"] == "panda_link8"
    assert [row["solved"] for row in record["rows"][1:]] == [1.0, 1.0]
    assert mobile.main(parser.parse_args(["--poses", "3"])) == 0
    assert "floating" in capsys.readouterr().out


def test_no_poses_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="poses is 0"):
        mobile.run_mobile_bench(fetch(), "wrist_roll_link", 0)
