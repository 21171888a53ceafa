"""Inputs of every kind that others can give, made from a seed and a number, and what must not happen with them.

Every input is a function of its kind, the seed and its number, so that each failure can be repeated alone::

    make fuzz ARGS="--inputs 100000 --seed 1"
    make fuzz ARGS="--kind urdf --seed 1 --first 4711 --inputs 1"
"""
