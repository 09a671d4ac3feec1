"""Read the options of a run from flags, the environment, the user's configuration and that of a tree."""
