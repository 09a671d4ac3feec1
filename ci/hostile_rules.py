"""Attack every rule with every hostile text, and count the results.

``python ci/hostile_rules.py [RULE-PREFIX] [MOST]``: the rules, and the most attacks on a case.

The tests make a sample of this (tests/rules/test_hostile.py). Exits with 1 when a value has left its argument.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.rules.test_hostile import FAILING, attacks, check


def main(prefix: str = "", most: str = "5000") -> int:
    """Attack the rules whose ids start with ``prefix``, each case up to ``most`` times; print the counts and faults."""
    begun, seen = time.monotonic(), Counter[str]()
    reached: dict[str, bool] = {}
    advised: dict[str, bool] = {}
    wrong: list[str] = []
    cases = [case for case in FAILING if case.rule.startswith(prefix)]
    for case in cases:
        facts, own = case.facts(), Counter[str]()
        for attack in islice(attacks(case, facts), int(most)):
            wrong += check(case, facts, attack, own)
        advised[case.rule] = advised.get(case.rule, False) or bool(own["steps"])
        reached[case.rule] = reached.get(case.rule, False) or bool(own["reached"] or own["without a command"])
        seen += own
    print(f"{len(cases)} cases of {len(advised)} rules in {time.monotonic() - begun:.0f} s: {dict(seen)}")
    print(f"{sum(advised.values())} rules advise steps; a hostile value reached those of {sum(reached.values())}")
    print("no steps:", " ".join(sorted(rule for rule, steps in advised.items() if not steps)))
    print("\n".join(wrong[:20]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
