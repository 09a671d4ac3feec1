"""The installation of torch: its files, search paths, the builds of its companions, and the loader."""
