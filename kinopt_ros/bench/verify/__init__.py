"""``kinopt bench verify``: random requests of all kinds, every success judged independently."""
