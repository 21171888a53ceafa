"""Configurations as Pinocchio has them."""

import numpy as np


def pinocchio_configuration(model, robot, q):
    """Return a configuration in Pinocchio's order and representation."""
    import pinocchio as pin

    theirs = pin.neutral(model)
    for joint in robot.joints:
        i = model.getJointId(joint.name)
        if i >= model.njoints or "Mimic" in model.joints[i].shortname():
            continue
        own, start = model.joints[i], model.joints[i].idx_q
        values = q[joint.first_variable : joint.first_variable + joint.type.num_variables]
        if joint.type.num_variables == 7:
            values = [*values[:3], *values[4:], values[3]]
        elif joint.type.num_variables == 3:
            values = [values[0], values[1], np.cos(values[2]), np.sin(values[2])]
        else:
            value = joint.multiplier * values[0] + joint.offset
            values = [value] if own.nq == 1 else [np.cos(value), np.sin(value)]
        theirs[start : start + own.nq] = values
    return theirs
