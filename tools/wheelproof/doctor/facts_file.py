"""The file of ``--save-facts`` and ``--facts``: a host without what is no one's business, to be diagnosed elsewhere."""

import json
import os

from wheel_checks.errors import NotFoundError, SourceError
from wheel_checks.facts.host.codec import from_json, to_json
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.redaction import redact
from wheel_checks.formats.documents import parse_json
from wheel_checks.sources.regular_file import read_start

LARGEST = 16 << 20  # bytes; a host with eight GPUs and a hundred packages has 60 kB


def facts_text(facts: HostFacts) -> str:
    """The text of the file: users, hosts, tokens, UUIDs and home folders are replaced."""
    users = {os.environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER")} - {""}
    clean = redact(facts, users=tuple(sorted(users)), hosts=(os.uname().nodename,), servers=True)
    return json.dumps(to_json(clean), indent=1) + "\n"


def load_facts(name: str) -> HostFacts:
    """The facts in a file. Raises NotFoundError, SourceError or FormatError."""
    try:
        content = read_start(name, LARGEST + 1, given=True)
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no {name}", hint="write one with --save-facts") from error
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        raise SourceError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return from_json(parse_json(content, name, LARGEST, "a file written by --save-facts"))
