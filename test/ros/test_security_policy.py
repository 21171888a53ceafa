"""docs/security/policy.xml lets the node do what it does, and nothing else; and the others what the node offers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.process import NodeProcess

POLICY = ElementTree.parse(Path(__file__).parents[2] / "docs" / "security" / "policy.xml").getroot()
NAMES = {"kinopt": "/kinopt", "kinopt_operator": "/kinopt_operator", "kinopt_viewer": "/kinopt_viewer"}
SOMETIMES = {
    "subscribe": {
        *("/clock", "/parameter_events", "/tf", "/tf_static"),
        *("/attached_collision_object", "/collision_object", "/planning_scene", "/planning_scene_world"),
        "/trajectory_execution_event",
        *("/kinopt/interactive_markers/feedback", "/kinopt/report", "/kinopt/servo/status"),
    },
    "publish": {
        *("/diagnostics", "/display_contacts", "/display_planned_path", "/kinopt/transition_event"),
        *("/kinopt/interactive_markers/update", "/monitored_planning_scene"),
    },
    "reply": {
        f"/{name}"
        for name in (
            "apply_planning_scene",
            "check_state_validity",
            "clear_octomap",
            "compute_cartesian_path",
            "compute_fk",
            "compute_ik",
            "get_planner_params",
            "get_planning_scene",
            "kinopt/change_state",
            "kinopt/get_available_states",
            "kinopt/get_available_transitions",
            "kinopt/get_state",
            "kinopt/get_transition_graph",
            "kinopt/interactive_markers/get_interactive_markers",
            "plan_kinematic_path",
            "plan_sequence_path",
            "query_planner_interface",
            "set_planner_params",
        )
    }
    | {"/kinopt/get_type_description"},
    "execute": {"/execute_trajectory", "/move_action", "/sequence_move_group"},
}
"""Topics and services that depend on parameters, on what is installed, and on the distribution."""
CHANGES = (
    "set_parameters",
    "set_planner_params",
    "change_state",
    "apply_scene",
    "target_pose",
    "twist",
    "emergency_stop",
    "feedback",
    "scene_update",
    "trajectory",
)


def allowed(node: str, what: str) -> set[str]:
    """Full names of topics, services or actions that the policy allows a node."""
    profile = POLICY.find(f".//profile[@node='{node}']")
    assert profile is not None
    found = profile.findall(f"./*[@{what}='ALLOW']/*")
    texts = [str(one.text) for one in found]
    assert len(set(texts)) == len(texts)
    return {text.replace("~", f"/{node}") if text[0] in "~/" else f"/{text}" for text in texts}


@pytest.fixture(scope="module", params=["", "interface_packages"], ids=["ROS alone", "MoveIt's types, too"])
def graph(ros: None, request: pytest.FixtureRequest) -> Iterator[dict[str, set[str]]]:
    """Return what a node under its default name publishes, hears and offers."""
    if request.param:
        request.getfixturevalue(request.param)
    with NodeProcess({}) as process:
        client = Client("policy_client")
        try:
            client.wait_until_found()
            client.spin_until(lambda: ("kinopt", "/") in client.node.get_node_names_and_namespaces(), 60.0)
            needed = {what: allowed("kinopt", what) - given for what, given in SOMETIMES.items()}
            client.spin_until(
                lambda: all(_graph(client)[what] >= names for what, names in needed.items()), 60.0
            )
            client.spin(1.0)  # what should not be there would show
            yield _graph(client)
        finally:
            client.close()
        assert process.running


def _graph(client: Client) -> dict[str, set[str]]:
    """Return what is discovered so far."""
    node = client.node
    publishers = node.get_publisher_names_and_types_by_node("kinopt", "/")
    subscribers = node.get_subscriber_names_and_types_by_node("kinopt", "/")
    services = {name for name, _ in node.get_service_names_and_types_by_node("kinopt", "/")}
    return {
        "publish": {name for name, _ in publishers if "/_action/" not in name},
        "subscribe": {name for name, _ in subscribers},
        "reply": {name for name in services if "/_action/" not in name},
        "execute": {name.split("/_action/")[0] for name in services if "/_action/" in name},
    }


@pytest.mark.parametrize("what", SOMETIMES)
def test_the_node_may_do_what_it_does_and_nothing_else(graph: dict[str, set[str]], what: str) -> None:
    permitted = allowed("kinopt", what)
    assert graph[what] - permitted == set()
    assert permitted - graph[what] - SOMETIMES[what] == set()


@pytest.mark.parametrize("who", ["kinopt_operator", "kinopt_viewer"])
def test_others_ask_for_what_there_is(graph: dict[str, set[str]], who: str) -> None:
    own = {"/parameter_events", "/rosout"}
    assert allowed(who, "publish") - own <= graph["subscribe"] | SOMETIMES["subscribe"]
    assert allowed(who, "subscribe") - own <= graph["publish"] | SOMETIMES["publish"]
    assert allowed(who, "request") <= graph["reply"] | SOMETIMES["reply"]
    assert allowed(who, "call") <= graph["execute"]


def test_who_only_looks_changes_nothing() -> None:
    permitted = allowed("kinopt_viewer", "publish") | allowed("kinopt_viewer", "request")
    permitted |= allowed("kinopt_viewer", "call")
    assert not [name for name in permitted if any(word in name for word in CHANGES)]


def test_every_enclave_is_that_of_its_node() -> None:
    paths = {one.get("path") for one in POLICY.iter("enclave")}
    assert paths == set(NAMES.values())


def test_a_node_that_cannot_be_protected_does_not_start(ros: None, tmp_path: Path) -> None:
    """Whatever is missing, keys or a middleware with security: a sentence, and no node without protection."""
    (tmp_path / "enclaves" / "kinopt").mkdir(parents=True)
    wanted = {
        "ROS_SECURITY_KEYSTORE": str(tmp_path),
        "ROS_SECURITY_ENABLE": "true",
        "ROS_SECURITY_STRATEGY": "Enforce",
    }
    result = subprocess.run(
        [sys.executable, "-m", "kinopt_ros.ros.main", "--ros-args", "--enclave", "/kinopt"],
        env={**os.environ, **wanted},
        capture_output=True,
        text=True,
        timeout=100.0,
        check=False,
    )
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert "kinopt: " in result.stderr.splitlines()[-1]
