"""How often somebody comes to a place, counted by the distance from it."""

from dataclasses import dataclass


@dataclass
class Visits:
    """Counts how often a distance gets small, and large again between.

    Small and large are shares of how far it was before: drives that lag cut corners by more, the farther they go.
    """

    count: int = 0
    away: bool = False
    """Whether it is away from the place. At first it counts as there."""
    extreme: float = 0.0
    """Least distance since it came; while it is away, the largest since it left; rad or m."""

    def take(self, distance: float, ratio: float, near: float, far: float) -> None:
        """Take notice of where it is.

        Args:
            distance: from the place, rad or m.
            ratio: how many times farther it has to be to be away, and nearer to be there.
            near: distance that always counts as there, rad or m.
            far: least distance that counts as away, rad or m.
        """
        if self.away:
            self.extreme = max(self.extreme, distance)
            if distance <= max(near, self.extreme / ratio):
                self.count, self.away, self.extreme = self.count + 1, False, distance
        else:
            self.extreme = min(self.extreme, distance)
            if distance >= max(far, ratio * self.extreme):
                self.away, self.extreme = True, distance
