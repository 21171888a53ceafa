"""Search on a device of this process: the plugin's, or that of its child process."""

import threading
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.chain import KinematicChain
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.failures import hopeless_requests
from kinopt_ros.solvers.hjcd.chain import ChainShape, kernel_chain
from kinopt_ros.solvers.hjcd.device_chain import DeviceChain, device_chain
from kinopt_ros.solvers.hjcd.loading import Kernels
from kinopt_ros.solvers.hjcd.paper import PaperSearch, PaperSettings
from kinopt_ros.solvers.hjcd.portion import finish
from kinopt_ros.solvers.hjcd.reference.pj_ik import RefineSettings
from kinopt_ros.solvers.hjcd.reference.po_ccd import CoarseSettings
from kinopt_ros.solvers.hjcd.runtime import start
from kinopt_ros.solvers.hjcd.screened import ScreenedSearch, ScreenSettings
from kinopt_ros.solvers.hjcd.search import Search, search
from kinopt_ros.solvers.hjcd.sticky import about_memory, is_sticky
from kinopt_ros.solvers.locked_joints import Prepared, PreparedChains, solve_in_parts
from kinopt_ros.solvers.result import IkCandidates


class DeviceLostError(RuntimeError):
    """This process cannot use its device any more; another one may."""


class Engine:
    """Search engine on one device. May be used from several threads."""

    def __init__(self, robot: RobotModel, options: Mapping[str, Any]) -> None:
        """Options are complete and legal.

        Raises:
            KinoptError: there is no such device.
        """
        self._robot = robot
        self._device = start(options["device"])
        self._algorithm = _algorithm(options, self._device)
        self._kernels = Kernels(self._algorithm)
        self._device_lock = threading.Lock()
        self._rounds: int = options["rounds"]
        self._chains = PreparedChains(robot, self._pack)
        self._made_anew = False
        self._proven: PreparedChains[DeviceChain] | None = None
        """The prepared chains that answered last, and so are known to work."""

    @property
    def device(self) -> str:
        """Name of the device."""
        return str(self._device.alias)

    @property
    def algorithm(self) -> Search:
        """The algorithm that answers requests."""
        return self._algorithm

    @property
    def loaded(self) -> tuple[ChainShape, ...]:
        """Shapes of chains whose kernels are loaded."""
        return self._kernels.loaded

    def load(self, shapes: Iterable[ChainShape]) -> None:
        """Load or compile the kernels of chains of a shape."""
        for shape in shapes:
            self._kernels.load(shape)

    def solve(self, problem: IkProblem, every_lane: bool) -> IkCandidates:
        """Return candidates; see ``Solver._solve_ik``, and ``_solve_pool`` for ``every_lane``.

        Raises:
            DeviceLostError: the device failed, and will, as long as this process lives.
            RuntimeError: it failed; the next request puts everything there again.
            NotReadyError: kernels are not loaded.
        """
        chains = self._chains
        try:
            found = solve_in_parts(problem, chains, partial(self._solve_part, every_lane))
        except RuntimeError as error:  # Warp's: a device that is full, or lost
            if self._is_lost(chains, error):
                raise DeviceLostError(str(error)) from error
            raise
        self._proven = chains
        return found

    def stop(self) -> None:
        """Compile nothing any more that nobody waits for."""
        self._kernels.stop()

    def close(self) -> None:
        """Free memory of the device. To be called last."""
        self.stop()
        self._kernels.wait()
        self._forget()

    def _is_lost(self, chains: PreparedChains[DeviceChain], error: RuntimeError) -> bool:
        """Forget all that lies on the device, so that the next request puts it there again; return whether that is in
        vain.

        It is if it was done before and did not help, or if the device does not answer any more.
        """
        lost = is_sticky(error)
        with self._device_lock:  # nobody captures a graph meanwhile: then one cannot wait for the device
            self._algorithm.forget()
            if chains is self._chains:  # others failed with the same ones, if not
                lost |= self._made_anew and chains is not self._proven and not about_memory(error)
                self._chains, self._made_anew = PreparedChains(self._robot, self._pack), True
            try:
                finish(self._device)
            except RuntimeError as again:
                lost |= not about_memory(again)
        return lost

    def _forget(self) -> None:
        with self._device_lock:
            self._algorithm.forget()

    def _pack(self, chains: tuple[KinematicChain, ...]) -> DeviceChain:
        return device_chain(kernel_chain(self._robot, chains[0]), self._device)

    def _solve_part(
        self, every_lane: bool, problem: IkProblem, prepared: Prepared[DeviceChain]
    ) -> IkCandidates:
        self._kernels.need(prepared.packed.chain.shape, problem.deadline is None)
        return search(
            problem,
            prepared,
            self._algorithm,
            self._device_lock,
            self._rounds,
            every_lane,
            partial(hopeless_requests, self._robot, problem),
        )


def _algorithm(options: Mapping[str, Any], device: Any) -> Search:
    graphs = options["graphs"] and device.is_cuda
    if options["algorithm"] == ScreenedSearch.name:
        settings = ScreenSettings(
            options["screen.num_starts"], options["screen.keep"], options["screen.steps"]
        )
        return ScreenedSearch(settings, device, graphs)
    coarse = CoarseSettings(
        iterations=options["coarse.max_iterations"],
        position=options["coarse.position_tolerance"],
        orientation=options["coarse.orientation_tolerance"],
        gain=options["coarse.gain"],
        noise=options["coarse.noise"],
    )
    refine = RefineSettings(
        iterations=options["refine.max_iterations"],
        radius=options["refine.radius"],
        noise=options["refine.noise"],
    )
    settings_of_paper = PaperSettings(options["coarse.num_seeds"], coarse, refine)
    return PaperSearch(settings_of_paper, device, graphs)
