"""An environment: what is installed, its files, links, GPU code and requirements."""
