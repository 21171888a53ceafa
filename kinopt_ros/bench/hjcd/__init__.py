"""``kinopt bench hjcd``: the tables of the paper of HJCD-IK, measured with the plugin."""
