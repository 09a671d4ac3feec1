"""An environment: its distributions, files, links, GPU code and requirements."""
