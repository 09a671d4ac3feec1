"""What a fix consists of: commands as data, the goal that they serve, and the packages of each extra."""
