"""Source archives (sdists): the members of their tar files, and the metadata that needs no build."""
