"""Lock files: ``uv.lock``, ``pylock.toml``, ``poetry.lock``, ``pdm.lock`` and ``pixi.lock``, one module each."""
