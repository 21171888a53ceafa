"""Workflows of a forge call what is there: targets of the Makefile, and nothing else that could rot unseen."""

import re
from pathlib import Path

import pytest
import yaml
from support.pages import ROOT

TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_command_is_a_target(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    called = [found for command in commands for found in re.findall(r"^make (?:-C \S+ )?([a-z-]+)", command)]
    assert called, path
    assert set(called) <= TARGETS
    assert all(command.startswith(("make ", "gh release ")) for command in commands)


def test_hooks_are_make_lint() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    (repository,) = hooks["repos"]
    assert [hook["entry"] for hook in repository["hooks"]] == ["make lint"]


def test_ci_runs_the_book() -> None:
    assert re.search(r"^step \d+ docs$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
