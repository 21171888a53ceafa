"""Reader of kinopt_msgs/Cost, and writer of kinopt_msgs/CostValue."""

from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from typing import Annotated, Any

from kinopt_msgs.msg import CostValue
from kinopt_ros.array import Float64
from kinopt_ros.costs.base import Cost
from kinopt_ros.errors import InvalidRequestError, KinoptError, shown
from kinopt_ros.objectives.evaluation import Term
from kinopt_ros.objectives.reading import cost_from_data, plain_data
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.xml_text import MAX_NAME_LENGTH
from kinopt_ros.ros.messages.conversions import flat_array

MOST, MOST_OF_A_KIND = 16, 4
"""Most costs of a request, and most of one kind."""
LONGEST = 100_000
"""Most characters of parameters of all costs of a request."""
MOST_TARGETS = 1000
"""Most targets of a request with costs."""
MOST_NUMBERS = 10_000
"""Most weights, tolerances and points of all costs of a request."""


def bounded_costs(messages: Sequence[Any], field: str) -> tuple[Any, ...]:
    """Return copies of the messages of a request's costs, unread: who has read a request may empty it.

    Raises:
        InvalidRequestError: there are too many, or they are too long.
    """
    if not messages:
        return ()
    kinds = Counter(message.cost for message in messages)
    if len(messages) > MOST or max(kinds.values(), default=0) > MOST_OF_A_KIND:
        raise InvalidRequestError(
            f"{field} has {len(messages)} costs, {max(kinds.values())} of a kind; allowed are {MOST}, and "
            f"{MOST_OF_A_KIND} of a kind: compilers take long over more"
        )
    for message in messages:
        # A label comes back with every target.
        for what, text in (("label", message.label), ("cost", message.cost)):
            if len(text) > MAX_NAME_LENGTH:
                raise InvalidRequestError(
                    f"{field} has a {what} of {len(text)} characters; allowed are at most {MAX_NAME_LENGTH}"
                )
    length = sum(len(message.parameters) for message in messages)
    numbers = sum(len(part) for m in messages for part in (m.weight, m.tolerance, m.points))
    if length > LONGEST or numbers > MOST_NUMBERS:
        raise InvalidRequestError(
            f"{field} has {length} characters of parameters and {numbers} numbers; allowed are {LONGEST} and "
            f"{MOST_NUMBERS}"
        )
    return tuple(map(deepcopy, messages))


def check_targets(messages: Sequence[Any], targets: int) -> None:
    """Raise InvalidRequestError if a request with costs has too many targets."""
    if messages and targets > MOST_TARGETS:
        raise InvalidRequestError(
            f"{targets} targets were given with costs; allowed are {MOST_TARGETS}: send several requests"
        )


def read_costs(robot: RobotModel, messages: Sequence[Any], field: str) -> tuple[Cost, ...]:
    """Return the costs of a request.

    Raises:
        KinoptError: what is wrong with which of them.
    """
    costs = []
    for number, message in enumerate(messages):
        try:
            costs.append(_cost(robot, message))
        except KinoptError as error:
            error.args = (f"{field}[{number}]: {error}",)
            raise
    return tuple(costs)


def _cost(robot: RobotModel, message: Any) -> Cost:
    data: dict[str, Any] = {}
    if message.parameters.strip():
        given = plain_data(message.parameters)
        own = {"cost", "weight", "tolerance", "points", "label"}
        if not isinstance(given, dict) or own & set(given):
            raise InvalidRequestError(
                f"parameters is {shown(given)}; allowed is a mapping of fields other than {', '.join(sorted(own))}"
            )
        data |= given
    data["cost"] = message.cost
    for name in ("weight", "tolerance"):
        numbers = [float(value) for value in getattr(message, name)]
        if numbers:
            data[name] = numbers[0] if len(numbers) == 1 else numbers
    if len(message.points):
        data["points"] = [int(value) for value in message.points]
    if message.label:
        data["label"] = message.label
    return cost_from_data(robot, data)


def cost_values(
    terms: Sequence[Term], multipliers: Sequence[Annotated[Float64, "P m"]] = ()
) -> list[CostValue]:
    """Return what became of costs as messages."""
    messages = []
    for number, term in enumerate(terms):
        message = CostValue(title=term.title, value=term.value, met=term.met)
        message.magnitudes = flat_array(term.magnitude)
        if term.tolerance is not None:
            message.tolerances = flat_array(term.tolerance)
            if number < len(multipliers):
                message.multipliers = flat_array(multipliers[number])
        messages.append(message)
    return messages
