"""The rules, one module per theme. Importing this package registers all of them."""

from wheel_checks.rules import accelerator, archive, choice, identity, members, metadata, publishing, record

__all__ = ["accelerator", "archive", "choice", "identity", "members", "metadata", "publishing", "record"]
