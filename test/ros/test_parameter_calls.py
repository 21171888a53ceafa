"""Calls of the parameter services, of whatever value, type and size: each gets an answer, and the node serves on."""

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import (
    DescribeParameters,
    GetParameters,
    GetParameterTypes,
    ListParameters,
    SetParameters,
    SetParametersAtomically,
)
from rclpy.parameter import parameter_value_to_python
from support.ros_requests import StartNode, ik, pose, stand

from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.ros.robot.joint_limits import PREFIX
from kinopt_ros.ros.robot.parameter_services import MOST_ASKED, MOST_SET
from kinopt_ros.solvers.registry import list_solvers
from kinopt_ros.status import Status

SERVICES = {
    "set_parameters": SetParameters,
    "set_parameters_atomically": SetParametersAtomically,
    "get_parameters": GetParameters,
    "get_parameter_types": GetParameterTypes,
    "describe_parameters": DescribeParameters,
    "list_parameters": ListParameters,
}
Call = Callable[[str, Any], Any]


@pytest.fixture(scope="module")
def call(client: Client) -> Iterator[Call]:
    """Calls a parameter service of the node."""
    yield from caller(client, "kinopt")


def caller(client: Client, node: str) -> Iterator[Call]:
    clients = {name: client.node.create_client(kind, f"{node}/{name}") for name, kind in SERVICES.items()}

    def ask(service: str, request: Any) -> Any:
        assert clients[service].wait_for_service(60.0)
        future = clients[service].call_async(request)
        assert client.spin_until(future.done, 60.0), f"no answer of {service}"
        return future.result()

    yield ask
    for each in clients.values():
        client.node.destroy_client(each)


def text(value: str) -> ParameterValue:
    return ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=value)


def number(value: float) -> ParameterValue:
    return ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value)


def whole(value: int) -> ParameterValue:
    return ParameterValue(type=ParameterType.PARAMETER_INTEGER, integer_value=value)


def put(call: Call, name: str, value: ParameterValue) -> Any:
    request = SetParameters.Request(parameters=[Parameter(name=name, value=value)])
    (result,) = call("set_parameters", request).results
    return result


def get(call: Call, *names: str) -> list[Any]:
    values = call("get_parameters", GetParameters.Request(names=list(names))).values
    return [parameter_value_to_python(value) for value in values]


def kept_values(call: Call, *names: str) -> Any:
    return call("get_parameters", GetParameters.Request(names=list(names))).values


def serves(client: Client) -> None:
    client.wait_until_ready(300.0)
    good = client.call("solve_ik", ik(pose()))
    assert good.status.code == Status.SUCCESS, good.status.message


REFUSED = {
    "a type that there is none of": ("ik.timeout", ParameterValue(type=10), "type 10"),
    "the last type byte": ("robot_description", ParameterValue(type=255), "type 255"),
    "unset": ("ik.timeout", ParameterValue(), "unset"),
    "no home": ("record_failures", text("~nosuchuser/x"), "record_failures"),
    "a long folder": ("record_failures", text("/" + "x" * 5000), "record_failures"),
    "many digits": ("tool_frames", text(f"a: 0x{'f' * 10_000}"), "a number of 10002 characters"),
    "many decimal digits": ("tool_frames", text(f"a: {'9' * 10_000}"), "YAML"),
    "deep nesting": ("tool_frames", text("[" * 10_000), "deep"),
    "a bomb of aliases": ("tool_frames", text("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]"), "aliases"),
    "a long text": ("tool_frames", text("a: {link: panda_hand}\n" * 20_000), "440000 characters"),
    "numbers to base 60": ("tool_frames", text(f"a: {':'.join(['1'] * 2000)}.5"), "YAML"),
    "half a character": ("tool_frames", text('"\\ud800": {link: panda_hand}'), "character"),
    "NaN": ("ik.timeout", number(math.nan), "allowed is"),
    "infinity": ("ik.timeout", number(math.inf), "allowed is"),
    "a large number": ("max_batch", whole(2**63 - 1), "allowed is"),
    "a long name of a solver": ("solver", text("x" * 1_000_000), "100000"),
    "a number for a text": ("default_group", whole(1), "quotes"),
    "bytes": (
        "ik.timeout",
        ParameterValue(type=ParameterType.PARAMETER_BYTE_ARRAY, byte_array_value=[b"a"] * 100_000),
        "takes a float",
    ),
    "many numbers": (
        "controller_joints",
        ParameterValue(type=ParameterType.PARAMETER_INTEGER_ARRAY, integer_array_value=range(100_000)),
        "100000 names",
    ),
    "a name that nobody declared": ("nobody.knows", number(1.0), "nobody.knows"),
    "a long name that nobody declared": ("n" * 1_000_000, number(1.0), "1000000 characters"),
    "no name": ("", number(1.0), "no parameter"),
    "another algorithm": ("hjcd.algorithm", text("newton"), "screened_lm, hjcd_ik"),
    "another device": ("jax_lm.device", text("abacus"), "auto, cpu, cuda, cuda:N"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_not_allowed_is_refused_with_a_sentence(client: Client, call: Call, kind: str) -> None:
    name, value, words = REFUSED[kind]
    result = put(call, name, value)
    assert not result.successful
    assert words in result.reason
    assert 10 < len(result.reason) < 1200
    if name in NAMES:
        types = call("get_parameter_types", GetParameterTypes.Request(names=[name])).types
        assert list(types) == [
            value.type for value in kept_values(call, name)
        ]  # not that of what was refused
    together = SetParametersAtomically.Request(
        parameters=[Parameter(name="ik.timeout", value=number(3.0)), Parameter(name=name, value=value)]
    )
    before = get(call, "ik.timeout")
    result = call("set_parameters_atomically", together).result
    assert not result.successful
    assert words in result.reason
    assert get(call, "ik.timeout") == before  # all of them, or none


def test_a_whole_number_passes_for_a_float_and_is_one(call: Call) -> None:
    before = get(call, "ik.timeout")[0]
    assert put(call, "ik.timeout", whole(2)).successful
    answer = call("get_parameters", GetParameters.Request(names=["ik.timeout"]))
    assert answer.values[0].type == ParameterType.PARAMETER_DOUBLE
    assert answer.values[0].double_value == 2.0
    limit = f"{PREFIX}panda_joint1.max_jerk"
    assert put(call, limit, whole(50)).successful
    assert get(call, limit) == [50.0]
    assert put(call, limit, ParameterValue()).successful  # none is given any more
    assert math.isnan(get(call, limit)[0])
    assert put(call, "ik.timeout", number(before)).successful


def test_twice_in_one_call_the_last_one_counts(call: Call) -> None:
    before = get(call, "ik.timeout")[0]
    twice = [Parameter(name="ik.timeout", value=number(value)) for value in (3.0, before)]
    assert call(
        "set_parameters_atomically", SetParametersAtomically.Request(parameters=twice)
    ).result.successful
    assert get(call, "ik.timeout") == [before]
    assert not call("set_parameters_atomically", SetParametersAtomically.Request()).result.successful


def test_a_robot_is_built_anew_only_for_another_value(
    client: Client, call: Call, process: NodeProcess
) -> None:
    client.wait_until_ready(300.0)
    # Robots are built one after the other: those that the tests before have asked for are there when this one is.
    (description,) = get(call, "robot_description")
    for name, urdf in (
        ("other", description.replace('name="panda"', 'name="other"', 1)),
        ("panda", description),
    ):
        before = process.log_text().count(f"ready: robot '{name}'")
        assert put(call, "robot_description", text(urdf)).successful
        assert client.spin_until(
            lambda: process.log_text().count(f"ready: robot '{name}'") > before,  # noqa: B023  # called at once
            60.0,
        )
    client.wait_until_ready(300.0)
    built = process.log_text().count("ready: robot")
    no = ParameterValue(type=ParameterType.PARAMETER_BOOL, bool_value=False)
    many = [Parameter(name="virtual_joint", value=no)] * MOST_SET
    results = call("set_parameters", SetParameters.Request(parameters=many)).results
    assert [result.successful for result in results] == [False] * (MOST_SET - 1) + [True]
    assert "only the last one counts" in results[0].reason
    limits = [f"{PREFIX}panda_joint{i + 1}.max_jerk" for i in range(7)]
    for k, value in enumerate((100.0, math.nan)):
        given = [Parameter(name=name, value=number(value)) for name in limits]
        for _ in range(2):
            results = call("set_parameters", SetParameters.Request(parameters=given)).results
            assert all(result.successful for result in results)
            assert client.spin_until(
                lambda: process.log_text().count("ready: robot") > built + k,  # noqa: B023  # called at once
                60.0,
            )
            client.wait_until_ready(300.0)  # while it is built, the same values begin anew
    assert process.log_text().count("ready: robot") == built + 2


def test_every_parameter_of_a_large_request_gets_its_answer(call: Call) -> None:
    many = [Parameter(name="ik.timeout", value=number(1.0))] * (MOST_SET + 1)
    results = call("set_parameters", SetParameters.Request(parameters=many)).results
    assert len(results) == len(many)
    assert all(str(MOST_SET) in result.reason for result in results)
    result = call("set_parameters_atomically", SetParametersAtomically.Request(parameters=many)).result
    assert str(MOST_SET) in result.reason


def test_large_questions_have_empty_answers(client: Client, call: Call, process: NodeProcess) -> None:
    names = ["ik.timeout"] * (MOST_ASKED + 1)
    assert not call("get_parameters", GetParameters.Request(names=names)).values
    assert not call("get_parameter_types", GetParameterTypes.Request(names=names)).types
    assert not call("describe_parameters", DescribeParameters.Request(names=names)).descriptors
    assert not call("list_parameters", ListParameters.Request(prefixes=names)).result.names
    heavy = GetParameters.Request(names=["robot_description"] * MOST_ASKED)
    assert not call("get_parameters", heavy).values
    assert str(MOST_ASKED) in process.log_text()
    serves(client)


def test_what_a_text_may_be_is_described(call: Call) -> None:
    names = [
        f"{info.name}.{option.name}" for info in list_solvers() for option in info.options if option.choices
    ]
    assert {"hjcd.algorithm", "jax_lm.device", "jax_lm.jacobian"} <= set(names)
    answer = call("describe_parameters", DescribeParameters.Request(names=["hjcd.algorithm"]))
    assert answer.descriptors[0].additional_constraints == "one of: screened_lm, hjcd_ik"


ODD = st.sampled_from([0.0, -0.0, 1.0, 2.5, -1.0, math.nan, math.inf, -math.inf, 1e300, 5e-324])
NAMES = (
    "default_group", "tool_frames", "target_pose.tip_link", "ik.timeout", "ik.max_timeout", "ik.position_tolerance",
    "ik.avoid_collisions", "trajectory.timeout", "trajectory.threads", "controller_action", "moveit_services",
    "servo.period", "servo.gain", "servo.tip_link", "max_batch", "state_timeout", "velocity_scaling",
    "controller_joints", "threads", "queue_size", "batching", "record_failures", "scene_file", "fallback_chain",
    "solver", "robot_description", "robot_description_semantic", "virtual_joint", "cpu.max_restarts",
    "jax_lm.device", "hjcd.algorithm", "hjcd.coarse.gain", "use_sim_time", "start_type_description_service",
    f"{PREFIX}panda_joint1.max_velocity", f"{PREFIX}panda_joint1.has_velocity_limits",
    f"{PREFIX}panda_joint2.min_position", f"{PREFIX}nobody.max_velocity",
)  # fmt: skip
words = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    st.sampled_from(
        ["panda_arm", "null", "~", "{}", "a: {link: panda_hand}", "[[", "&a [*a]", "1", "x" * 300_000]
    ),
)
parameter_names = st.one_of(st.sampled_from(NAMES), st.sampled_from(NAMES), words)


def value_of(kind: int, flag: bool, integer: int, real: float, word: str, count: int) -> ParameterValue:
    """All fields filled: the type says which one counts."""
    return ParameterValue(
        type=kind,
        bool_value=flag,
        integer_value=integer,
        double_value=real,
        string_value=word,
        byte_array_value=[b"\xff"] * count,
        bool_array_value=[flag] * count,
        integer_array_value=[integer] * count,
        double_array_value=[real] * count,
        string_array_value=[word[:100]] * count,
    )


values = st.builds(
    value_of,
    st.one_of(st.integers(0, 9), st.integers(0, 255)),
    st.booleans(),
    st.one_of(st.integers(-2, 5), st.integers(-(2**63), 2**63 - 1)),
    st.one_of(ODD, st.floats()),
    words,
    st.sampled_from([0, 1, 2, 20_000]),
)
parameters = st.builds(Parameter, name=parameter_names, value=values)
requests = st.one_of(
    st.builds(SetParameters.Request, parameters=st.lists(parameters, max_size=3)),
    st.builds(SetParametersAtomically.Request, parameters=st.lists(parameters, max_size=3)),
    st.builds(GetParameters.Request, names=st.lists(parameter_names, max_size=4)),
    st.builds(GetParameterTypes.Request, names=st.lists(parameter_names, max_size=4)),
    st.builds(DescribeParameters.Request, names=st.lists(parameter_names, max_size=4)),
    st.builds(
        ListParameters.Request,
        prefixes=st.lists(parameter_names, max_size=3),
        depth=st.sampled_from([0, 1, 2, 2**64 - 1]),
    ),
)


def test_any_calls_of_the_six_services(client: Client, call: Call, process: NodeProcess) -> None:
    names = {kind.Request: name for name, kind in SERVICES.items()}
    kept = [name for name in NAMES if name not in (f"{PREFIX}nobody.max_velocity",)]
    before = dict(zip(kept, call("get_parameters", GetParameters.Request(names=kept)).values, strict=True))

    @settings(
        max_examples=80,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(request=requests)
    def fuzz(request: Any) -> None:
        answer = call(names[type(request)], request)
        if isinstance(request, SetParameters.Request):
            assert len(answer.results) == len(request.parameters)
            assert all(result.successful or len(result.reason) > 5 for result in answer.results)

    fuzz()
    assert process.running
    assert "internal error" not in process.log_text()
    for name, value in before.items():
        result = put(call, name, value)
        assert result.successful or "read-only" in result.reason, f"{name}: {result.reason}"
    serves(client)


def test_parameters_may_be_listed_while_descriptions_load(
    start_node: StartNode, panda_texts: tuple[str, str]
) -> None:
    """A robot of many joints, each time with other names: their limits are declared while others ask."""
    process, client = start_node("changing", {}, ready=False)
    client.wait_until_found()
    ask = next(caller(client, "changing"))
    listed: list[str] = []
    for round_ in range(2):
        joints = 40
        robot = f'<robot name="r{round_}"><link name="l0"/>' + "".join(
            f'<link name="l{i + 1}"/><joint name="j{round_}_{i}" type="revolute"><parent link="l{i}"/>'
            f'<child link="l{i + 1}"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint>'
            for i in range(joints)
        )
        robot += "</robot>"
        assert put(ask, "robot_description", text(robot)).successful
        end = time.monotonic() + 60.0
        wanted = f"{PREFIX}j{round_}_{joints - 1}.max_jerk"
        while time.monotonic() < end:
            listed = ask("list_parameters", ListParameters.Request()).result.names
            if wanted in listed:
                break
        assert wanted in listed
    assert not any(
        name.startswith(f"{PREFIX}j0_") for name in listed
    )  # those of another robot do not pile up
    assert process.running


def test_a_dump_starts_a_node_that_is_the_same(
    start_node: StartNode, panda_parameters: dict[str, object], tmp_path: Path
) -> None:
    """`ros2 param dump` writes parameters like this: what is unset as null."""
    given = {
        **panda_parameters,
        "ik.timeout": 7,
        "controller_joints": [f"panda_joint{i + 1}" for i in range(7)],
        "fallback_chain": [],
        f"{PREFIX}panda_joint3.max_velocity": 1,
        f"{PREFIX}panda_joint5.has_jerk_limits": False,
    }
    _, client = start_node("dumped", given)
    ask = next(caller(client, "dumped"))
    names = ask("list_parameters", ListParameters.Request()).result.names
    answers = ask("get_parameters", GetParameters.Request(names=names)).values
    dumped: dict[str, Any] = {}
    for name, value in zip(names, answers, strict=True):
        *folders, last = name.split(".")
        folder = dumped
        for each in folders:
            folder = folder.setdefault(each, {})
        folder[last] = parameter_value_to_python(value)
    assert not [name for name, value in zip(names, answers, strict=True) if value.type == 0]
    file = tmp_path / "dump.yaml"
    file.write_text(yaml.dump({"/**": {"ros__parameters": dumped}}, default_flow_style=False))
    again_process, again = start_node("again", yaml.safe_load(file.read_text())["/**"]["ros__parameters"])
    ask_again = next(caller(again, "again"))
    assert sorted(ask_again("list_parameters", ListParameters.Request()).result.names) == sorted(names)
    values = ask_again("get_parameters", GetParameters.Request(names=names)).values
    differing = {
        name: (then, now)
        for name, then, now in zip(names, answers, values, strict=True)
        if str(then) != str(now)  # NaN is another number than itself
    }
    assert not differing
    assert "parameters of no joint" not in again_process.log_text()
    for each in (client, again):
        stand(each)
    asked = ik(pose(), random_seed=3)
    assert list(client.call("solve_ik", asked).positions) == list(again.call("solve_ik", asked).positions)
