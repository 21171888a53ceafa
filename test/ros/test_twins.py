"""A second node of the same name is noticed by both, and nobody is accused who is alone."""

from std_srvs.srv import Trigger
from support.ros_requests import StartNode

from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.ros.serving.twins import WATCH_SECONDS


def said(process: NodeProcess, client: Client, sentence: str) -> bool:
    return client.spin_until(lambda: sentence in process.log_text(), 60.0)


def test_a_second_node_of_the_same_name_is_noticed(start_node: StartNode) -> None:
    first, client = start_node("twin", {}, ready=False)
    alone, _ = start_node("no_twin", {}, ready=False)
    client.node.create_client(Trigger, "/twin/ready").wait_for_service(60.0)
    client.spin(2.0 * WATCH_SECONDS)
    assert "nodes /twin" not in first.log_text()
    second, _ = start_node("twin", {}, ready=False)
    sentence = "there are 2 nodes /twin in ROS domain"
    for process in (first, second):
        assert said(process, client, sentence), process.log_text()
        assert "__ns:=" in process.log_text()
        assert process.log_text().count(sentence) == 1  # not at every look
    assert second.stop() == 0
    assert said(first, client, "this is the only node /twin again"), first.log_text()
    assert "nodes /no_twin" not in alone.log_text()


def test_names_in_other_namespaces_are_others(start_node: StartNode, ros: None) -> None:
    with NodeProcess({}, name="apart", namespaces={"left": {}, "right": {}}) as process:
        client = Client("apart_client", "/left/apart")
        try:
            for namespace in ("left", "right"):
                service = client.node.create_client(Trigger, f"/{namespace}/apart/ready")
                assert service.wait_for_service(60.0)
            client.spin(2.5 * WATCH_SECONDS)
            assert "nodes /" not in process.log_text()
        finally:
            client.close()
