"""Lines of METADATA that are put together of parts, so that unforeseen combinations arise."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

from tests.support.mutants.base import FILES, INFO, Mutant, wheel

METADATA = f"{INFO}/METADATA"
_EACH = 120  # lines of each kind

NAMES = ("other", "other[x]", "other[x_]", "other_", "o.x", "other []", "other[x,y]", "Oth-er", "ot her", "9", "öther")
VERSIONS = (
    *(
        "",
        "()",
        "( )",
        "(>=1)",
        "(>=1,)",
        ">=1",
        ">=1,",
        ">=1,,<2",
        ",>=1",
        "===1",
        "===foo",
        "===1.*",
        "==1.*",
        ">=1.*",
    ),
    *("~=1", "~=1.0", "==1+x", ">=1+x", "!=1.0.*", ">=18446744073709551615", ">1a99999999999999999999", "<>1", "=>1"),
    *(" >= 1 , <2", ">=1 <2", ">=v1", ">=1.0.dev", "== 1-1", "1", "~=1.*", "<1.0.0.0.0.0.0"),
)
MARKERS = (
    *(
        "",
        " ; os_name=='nt'",
        ";python_version>='3'",
        "; extra=='x'",
        "; os_name==='nt'",
        "; python_version in '3.8 3.9'",
    ),
    *("; foo=='x'", " ;", "; 'x' in extras", "; (os_name=='nt'", "; python_version>3", "; python_version~='3'"),
    *(
        '; os_name=="nt" and',
        "; platform_version>='#1'",
        "; os.name=='nt'",
        "; sys_platform=='it\\'s'",
        "; '3'<python_version",
    ),
)
SCHEMES = (
    "https://",
    "http://",
    "file://",
    "file:///",
    "git+https://",
    "git+ssh://git@",
    "git://",
    "hg+https://",
    "ftp://",
    "",
)
PLACES = (
    *("x.example/a-1-py3-none-any.whl", "x.example/a-1.tar.gz", "x.example/a", "x.example/a-1.zip#egg=a", "x.example/"),
    *(
        "x.example/a-1.tar.gz?x=y",
        "x.example/a-1.egg",
        "./x",
        "x.example/a-1.ZIP",
        "${HOST}/a-1.zip",
        "[::1]/a-1.zip",
        "[::1/a",
    ),
)
CLAUSES = (
    *(
        "",
        ">=3.8",
        "<4",
        "===3.11",
        "===foo",
        "!=3.0*",
        "!=3.0.*",
        ">=2.7.*",
        "!=~3.0",
        ">dev",
        "'>=3'",
        ">='3'",
        "3",
        "three",
    ),
    *(
        "~=3",
        "~=3.8",
        ">=3!3",
        "<=3.99999999999999999999",
        ">=3.8b1.0",
        "==3.*",
        "> 2",
        ">=3.8-1",
        "^3",
        ">=3.x",
        "<4.dev0",
    ),
)
JOINTS = (",", ", ", ",,", "<4,", " ", ";", " and ", "!=2.6,")


def mutants() -> Iterator[Mutant]:
    """Wheels with a requirement, a direct reference, or a Requires-Python more."""
    named = [f"{name}{versions}{marker}" for name, versions, marker in product(NAMES, VERSIONS, MARKERS)]
    referring = [f"other @ {scheme}{place}{marker}" for scheme, place, marker in product(SCHEMES, PLACES, MARKERS[:4])]
    pythons = [f"{first}{joint}{second}" for first, joint, second in product(CLAUSES, JOINTS, CLAUSES)]
    for kind, field, lines in (
        ("METADATA lines: requirements", "Requires-Dist", named),
        ("METADATA lines: direct references", "Requires-Dist", referring),
        ("METADATA lines: Requires-Python", "Requires-Python", pythons),
    ):
        for line in random.Random(kind).sample(lines, _EACH):
            content = FILES[METADATA].replace(b"\n\n", f"\n{field}: {line}\n\n".encode())
            yield wheel(kind, f"{field}: {line}", {**FILES, METADATA: content})
