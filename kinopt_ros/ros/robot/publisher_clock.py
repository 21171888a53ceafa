"""What the stamps of joint states say of the clock of who publishes them."""

from dataclasses import dataclass

EARLIEST, LATEST = -0.05, 0.5
"""How late joint states come after their stamps where clocks agree, s."""
STEP = 50_000_000
"""What a clock may be read too late or too early without having been set, ns."""
_SECOND = 10**9
_TIMES, _WINDOW = 3, 250_000_000
"""Least messages, and least time (ns), of which the one that was least late counts: what is held up on its way comes
in bursts, or late for a while."""
_FAR, _SHORT = _SECOND, 50_000_000
"""Steps (ns) from which on a shorter time will do: nothing is held up for so long so often."""
_SLEW = 2e-3
"""Share of the time by which clocks may drift apart."""
_LASTS = 10 * _SECOND
"""Time after which messages that are much later, or sooner, are those of a clock that was set by itself, ns: of two
clocks that are set one is the first."""


@dataclass
class PublisherClock:
    """The clock of somebody who publishes joint states, beside that of motions and the node's, which may have been set
    ahead of that."""

    heard: int
    """When he was heard of last, ns of the time that the node has listened."""
    least: int | None = None
    """The least time by which his messages come after their stamps, by the clock of motions, ns."""
    shares: bool = False
    """Whether his clock was set as the node's was."""
    _begin: int = 0
    _count: int = 0
    _late: int = 0
    _by_node: int = 0
    """Since when the present messages are counted (ns of the machine's time), how many there are, and by how much they
    were late at least, by either clock."""
    _off: int = 0
    """Since when they are much later, or sooner, than before, ns of the machine's time; 0 if they are not."""
    _judged: int = 0
    """When messages were judged last, ns of the machine's time."""

    @property
    def agrees(self) -> bool:
        """Whether his clock is as that of motions."""
        return self.least is not None and _agrees(self.least)

    @property
    def tells(self) -> bool:
        """Whether he may have the clock that motions go by."""
        return self.least is None or self.agrees

    def is_nearer(self, ahead: int) -> bool:
        """Check whether his clock is nearer to the node's, which is ``ahead`` (ns) of that of motions."""
        return self.least is not None and abs(self.least + ahead) < abs(self.least)

    def take(self, late: int, ahead: int, at: int) -> None:
        """Take a message.

        Args:
            late: by how much it comes after its stamp, by the clock of motions, ns.
            ahead: how far ahead of that the node's clock is, ns.
            at: when it comes, ns of the machine's time.
        """
        if not self._count:
            self._begin, self._late, self._by_node = at, late, late + ahead
        self._count += 1
        self._late, self._by_node = min(self._late, late), min(self._by_node, late + ahead)
        if self._count >= _TIMES and at >= self._begin + (_WINDOW if abs(ahead) < _FAR else _SHORT):
            self._judge(at)
            self._count = 0

    def begin_anew(self, alone: bool) -> None:
        """Take notice that the node's clock was set. ``alone``: nobody waits for an earlier step."""
        self.shares = False
        self._count = 0 if alone else self._count

    def follow(self, ahead: int) -> None:
        """Take notice that the clock of motions is set ahead, ns."""
        if self.least is not None and not self.shares:
            self.least += ahead
        self.shares, self._count = False, 0

    def _judge(self, at: int) -> None:
        before = 0 if self.least is None else self.least  # of two clocks that may be his it is the nearer one
        self.shares = abs(self._by_node - before) < abs(self._late - before)
        late = self._by_node if self.shares else self._late
        if self.least is None or (_agrees(late) and not self.agrees):
            self.least, self._off = late, 0
        elif abs(late - self.least) <= STEP:
            self.least, self._off = min(late, self.least + round(_SLEW * (at - self._judged))), 0
        else:
            self._off = self._off or at
            if at >= self._off + _LASTS:
                self.least, self._off = late, 0
        self._judged = at


def _agrees(late: int) -> bool:
    return EARLIEST * _SECOND <= late <= LATEST * _SECOND
