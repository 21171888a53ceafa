"""The layer in PyTorch."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="differentiable kinematics need jax")
torch = pytest.importorskip("torch", reason="torch is not installed")

from kinopt_ros import differentiable as kd
from kinopt_ros.errors import InvalidStateError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.sources import load_robot

LINKS = ["panda_link8"]


@pytest.fixture
def panda():
    return load_robot("panda")


def test_poses_and_gradients(panda):
    layer = kd.torch_layer(panda, LINKS)
    q = random_configurations(panda, 5, 0)
    tensor = torch.tensor(q, dtype=torch.float32, requires_grad=True)
    T = layer(tensor)
    assert T.shape == (5, 1, 4, 4)
    np.testing.assert_allclose(T.detach().numpy(), forward_kinematics(panda, q, LINKS), atol=2e-6)
    T[:, 0, 2, 3].sum().backward()
    expected = np.asarray(kd.jacobian(panda, LINKS[0])(q))[:, 2]
    np.testing.assert_allclose(tensor.grad.numpy(), expected, atol=1e-5)


@pytest.mark.usefixtures("double")
def test_gradcheck(panda):
    layer = kd.torch_layer(panda, LINKS)
    q = torch.tensor(random_configurations(panda, 2, 0), requires_grad=True)
    assert torch.autograd.gradcheck(layer, (q,))


def test_it_trains_a_network(panda):
    torch.manual_seed(0)
    layer = kd.torch_layer(panda, LINKS)
    model = torch.nn.Sequential(torch.nn.Linear(3, 32), torch.nn.Tanh(), torch.nn.Linear(32, panda.nq))
    target = torch.tensor([[0.4, 0.1, 0.5]])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(100):
        optimizer.zero_grad()
        loss = ((layer(model(target))[:, 0, :3, 3] - target) ** 2).sum()
        loss.backward()
        optimizer.step()
    assert loss < 1e-4


def test_refused(panda):
    layer = kd.torch_layer(panda, LINKS)
    with pytest.raises(InvalidStateError, match="jax_enable_x64"):
        layer(torch.zeros(2, panda.nq, dtype=torch.float64))
    with pytest.raises(InvalidStateError, match="floating type"):
        layer(torch.zeros(2, panda.nq, dtype=torch.int64))
    with pytest.raises(InvalidStateError, match="shape"):
        layer(torch.zeros(2, 3))
