"""Documents in TOML: pyproject.toml, uv.toml, pixi.toml, hatch.toml and Pipfile."""
