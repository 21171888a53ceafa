"""Objectives of one configuration: costs that are compiled, weighed or kept, from many starts."""
