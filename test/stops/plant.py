"""What may be wrong with a robot, its controller and the messages between: faults that no simulated robot has."""

from dataclasses import dataclass

MS = 1_000_000
"""ns."""


@dataclass(frozen=True)
class Plant:
    """A robot and its controller; as they are by default, they do what they are told."""

    drive_lag: float = 0.0
    """Time constant of drives, s."""
    longest_lag: float = 0.0
    """That of the last joint, where those of the others are evenly between; 0: all have the same."""
    filters_velocities: float = 0.0
    """Time constant with which the driver filters velocities, s."""
    speed_scaling: float = 1.0
    """Share of their speed with which its controller does motions."""
    from_desired: bool = True
    """Whether what replaces a motion begins where its controller had the joints; else where they are measured."""
    late: int = 0
    """How much later the controller begins than messages come, ns."""
    way: tuple[int, int] = (1 * MS, 8 * MS)
    """Least and most time of a message to the controller, ns."""
    state_way: tuple[int, int] = (MS // 2, 3 * MS)
    """The same of joint states."""
    period: int = 4 * MS
    """Time between two joint states, ns."""
    measured_before: int = 0
    """Time by which joint states are older than they say, as by a filter, ns."""
    noise: float = 0.0
    """Standard deviation of positions that are measured, rad or m."""
    velocity_noise: float = 0.0
    """The same of velocities."""
    velocities: bool = True
    """Whether the driver measures velocities."""
    misses: float = 0.0
    """Share of cycles in which the driver reads nothing: it says where joints were, and divides by the time of one
    cycle in the next."""
    wraps: bool = False
    """Whether the driver says angles between minus half a turn and that."""
    stamps: bool = True
    """Whether joint states have stamps."""
    keeps_stamps: bool = True
    """Whether the controller begins motions at their stamp; else when they come."""
    clock: int = 0
    """Time by which the clock of robot and controller is ahead of the node's, ns."""
    loses_states: float = 0.0
    """Share of joint states that are lost."""
    repeats: int | None = None
    """Time before the stop from which on the driver repeats where joints were, for a second, as if they stood, ns."""
    loses_brakes: int = 0
    """Number of brakes from where the robot is, the first ones, that do not reach the controller."""


PLANTS: dict[str, Plant] = {
    "exact": Plant(),
    "lag_10": Plant(drive_lag=0.010),
    "lag_30": Plant(drive_lag=0.030),
    "lag_70": Plant(drive_lag=0.070),
    "filter_20": Plant(measured_before=20 * MS),
    "filter_50": Plant(measured_before=50 * MS),
    "filter_100": Plant(measured_before=100 * MS),
    "slider_98": Plant(speed_scaling=0.98),
    "slider_95": Plant(speed_scaling=0.95),
    "slider_80": Plant(speed_scaling=0.8),
    "slider_50": Plant(speed_scaling=0.5),
    "slider_20": Plant(speed_scaling=0.2),
    "late_50": Plant(late=50 * MS),
    "busy": Plant(way=(5 * MS, 40 * MS), state_way=(2 * MS, 40 * MS)),
    "slow_states": Plant(period=20 * MS, state_way=(1 * MS, 15 * MS), loses_states=0.2),
    "noise": Plant(noise=3e-4, velocity_noise=0.01),
    "no_velocities": Plant(velocities=False, noise=1e-4),
    "misses_cycles": Plant(period=10 * MS, misses=0.1),
    "misses_cycles_lag_10": Plant(period=10 * MS, misses=0.1, drive_lag=0.010),
    "no_stamps": Plant(stamps=False),
    "ignores_stamps": Plant(keeps_stamps=False),
    "clock_ahead": Plant(clock=60 * MS),
    "clock_behind": Plant(clock=-60 * MS),
    "loses_a_brake": Plant(loses_brakes=1),
    "repeats_50": Plant(repeats=50 * MS),
    "repeats_200": Plant(repeats=200 * MS),
    "lag_30_noise": Plant(drive_lag=0.030, noise=3e-4, velocity_noise=0.01),
    "lag_30_no_velocities": Plant(drive_lag=0.030, velocities=False, noise=1e-4),
    "slider_80_no_velocities": Plant(speed_scaling=0.8, velocities=False, noise=1e-4),
    "as_measured": Plant(from_desired=False),
    "as_measured_lag_10": Plant(from_desired=False, drive_lag=0.010),
    "as_measured_lag_10_clock_behind": Plant(from_desired=False, drive_lag=0.010, clock=-8 * MS),
    "as_measured_lag_30": Plant(from_desired=False, drive_lag=0.030),
    "as_measured_slider_80": Plant(from_desired=False, speed_scaling=0.8),
    "as_measured_slider_98": Plant(from_desired=False, speed_scaling=0.98),
    "as_measured_lag_30_no_velocities": Plant(from_desired=False, drive_lag=0.03, velocities=False),
    "as_measured_busy": Plant(
        from_desired=False, drive_lag=0.01, way=(5 * MS, 40 * MS), state_way=(2 * MS, 40 * MS)
    ),
    "as_measured_noise": Plant(from_desired=False, drive_lag=0.01, noise=3e-4, velocity_noise=0.01),
    "as_measured_lags_5_to_15": Plant(from_desired=False, drive_lag=0.005, longest_lag=0.015),
    "as_measured_lag_5_filtered": Plant(from_desired=False, drive_lag=0.005, filters_velocities=0.020),
    "lags_5_to_15": Plant(drive_lag=0.005, longest_lag=0.015),
    "lag_10_slider_95": Plant(drive_lag=0.010, speed_scaling=0.95),
    "lag_30_slider_80": Plant(drive_lag=0.030, speed_scaling=0.8),
}
"""By the names that ``make stops`` takes."""
