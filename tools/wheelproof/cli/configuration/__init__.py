"""Where the options of a run come from: flags, the environment, the user's own configuration, that of a tree."""
