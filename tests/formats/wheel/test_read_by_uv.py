"""Requires-Python and Requires-Dist as uv 0.13.8 reads or refuses them, tested in November 2026 with wheels."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement

from wheel_checks.formats.wheel.read_by_uv import (
    corrected,
    corrected_requirement,
    requirement_fault,
    requires_python_fault,
)

READ = {
    "'>=3.8'": ">=3.8",
    ">='3.8', <'4'": ">=3.8, <4",
    ">=3.8'": ">=3.8",
    '>= "3.8"': ">= 3.8",
    ">=3.8.*,<4.*": ">=3.8,<4",
    "!=3.0*": "!=3.0.*",
    ">=2.7, !=3.0*, !=3.1*": ">=2.7, !=3.0.*, !=3.1.*",
    ">=3.8b1.0": ">=3.8b1",
    ">=3.8.0rc1.0": ">=3.8.0rc1",
    ">dev": ">0.0.0dev",
    "<=3.9.*": "<=3.9",
    "!=~3.0.1": "!=3.0.1.*",
    ">=3.8<4,>3": ">=3.8,<4,>3",
    ">=2.7,!=3.0.*,!=3.1.*,!=3.2.*,<3.5.*": ">=2.7,!=3.0.*,!=3.1.*,!=3.2.*,<3.5",
    ">=3.8.*, '<4'": ">=3.8, <4",
    "=='3.*'": "==3.*",
}
REFUSED = [
    *("three", "'3.8'", ">=3.8.*<4.*", "!=3.10*", "!=3*", "==3*", ">=3*", ">=3.8*", "~=3.*", "==3.8.*.*", ">=dev"),
    *("!=~30", "!=~3.10", ">=3.8 , , <4", ">=3.8,,<4", ">=3.8 and <4", ">=3.8;<4", "^3.8", ">=3.8^4", ">=3.6.x"),
    *(">=3.6+", "=3.8", "=>3.8", ">=3.8 <4", "(>=3.8)", ">==3.8", ">=\u201d3.8\u201d", "~=3", "2.7", "python>=3.8"),
]


@pytest.mark.parametrize(("text", "meant"), READ.items())
def test_what_uv_reads(text: str, meant: str) -> None:
    assert corrected(text) == meant


@pytest.mark.parametrize("text", REFUSED)
def test_what_uv_refuses(text: str) -> None:
    assert corrected(text) == ""


LINES_READ = {
    "zz (>=5.1.*)": "zz (>=5.1)",
    "zz>=1.0<2": "zz>=1.0,<2",
    "zz!=~3.0": "zz!=3.0.*",
    "zz!=3.0*": "zz!=3.0.*",
    "zz>='3.8'; extra == 'x'": "zz>=3.8; extra == 'x'",
    "zz>=3.8.*; python_version >= '3'": "zz>=3.8; python_version >= '3'",
    "zz (<5.*,>=3.*)": "zz (<5,>=3)",
}
LINES_REFUSED = ["zz=>3.6", "zz 1.0", "zz>=1.0; python_version>=3.8", "zz=1.0", "zz ~> 1.0", "zz[a,]>=1", "zz>=1.0 <2"]


@pytest.mark.parametrize(("line", "meant"), LINES_READ.items())
def test_a_line_that_uv_reads_and_pip_refuses(line: str, meant: str) -> None:
    assert corrected_requirement(line) == meant


@pytest.mark.parametrize("line", LINES_REFUSED)
def test_a_line_that_both_refuse(line: str) -> None:
    assert corrected_requirement(line) == ""


PYTHONS_REFUSED = [
    *(">=3.8,,<4", ",>=3.8", " ,>=3", ">=3,,", ",,", ">=3, ,<4", "===foo", "===3.8.*", "===3.*"),
    *(
        "<=3.99999999999999999999",
        ">=3.18446744073709551615",
        "!=3.0.18446744073709551616",
        ">=0.0a99999999999999999999",
    ),
    f">=3.{'9' * 4_400}",
]
PYTHONS_TAKEN = [
    *("", ",", ">=3.8,", ">=3.8 ,", "<4,>=3,", "===3.11", "=== 3.11.7", ">=3.18446744073709551614", ">=3!3.8"),
    *("==3.8+99999999999999999999", "~=3.8.0.dev0", ">=3.8\t,<4", ">=3.8-1", f">=3.{'0' * 30}8"),
]


@pytest.mark.parametrize("text", PYTHONS_REFUSED)
def test_a_requires_python_that_packaging_takes_and_uv_refuses(text: str) -> None:
    assert requires_python_fault(text)


@pytest.mark.parametrize("text", PYTHONS_TAKEN)
def test_a_requires_python_that_both_take(text: str) -> None:
    assert requires_python_fault(text) == ""


PLACE = "https://x.example"
REQUIREMENTS_REFUSED = [
    *("a===foo", "a===1.*", "a===1.0.foo", "a (===foo)", "a()", "a ()", "a ( )", "a[x]()"),
    *("a ( ) ; os_name=='nt'", "a_", "a_b_", "a[x_]", "a>=99999999999999999999999999", "a>=1.18446744073709551615"),
    *("a>=1.0a99999999999999999999", "a>=99999999999999999999!1", "a>=1.0.dev99999999999999999999"),
    *("a; python_full_version==='3'", "a; python_version === '3.*'", "a; implementation_version === 'foo'"),
    *("a @ ./x", "a @ a", "a @ x/y.whl", "a @ ~/a.whl", "a @ C:\\a.whl", "a @ file:x", "a @ file://x/y"),
    *(
        "a @ file:///x.foo",
        "a @ file:///x.example/",
        "a @ git+https://[::1/a",
        "a @ ftp://x/a-1.tar.gz",
        "a @ s3://x/a-1.tar.gz",
        "a @ git+git://x/y",
        "a @ git://x/y",
    ),
    *("a @ hg+https://x/y", "a @ svn+https://x/y", "a @ bzr+https://x/y", "a @ HTTPS://x/a-1.zip"),
    *(f"a @ {PLACE}/{path}" for path in ("a-1.egg", "d?f=a.tar.gz", "A-1.WHL", "a-1.ZIP", "", "x", "a-1.tbz2")),
    *(f"a @ {PLACE}/{path}" for path in ("a-1.tar.Z", "a-1.gz", "a-1.whl.metadata", "a-1.zip;os_name=='nt'")),
    *("a @ https:///a.zip", "a @ https://[::1/a-1.zip", "a@https://x.example/x", "a @ https://${HOST}/x"),
]
REQUIREMENTS_TAKEN = [
    *(
        "a",
        "a>=1,",
        "a(>=1)",
        "a (>=1.0,)",
        "a===1",
        "a===1.0+x",
        "a>=1.18446744073709551614",
        "a==1.0+99999999999999999999",
    ),
    *("a[b,c]", "a []", "a[x__y]", "a__b", "a; sys_platform == '==='", "a; sys_platform == '()'", "a; (os_name=='nt')"),
    *("a @ git+ssh://git@x/y.git", "a @ git+https://x/y@v1#subdirectory=z", "a @ git+http://x/y", "a @ git+file:///y"),
    *("a @ file:///x", "a @ file:///x.whl", "a @ file:///a/b/", "a @ /abs/a-1.whl"),
    *(f"a @ {PLACE}/a-1{end}" for end in (".zip", ".tar", ".tgz", ".tar.lzma", ".tar.lz", ".tar.zst", ".tbz", ".tlz")),
    *(f"a @ {PLACE}/a-1.tar.gz{end}" for end in ("", "#egg=a", "?x=y", " ; os_name=='nt'")),
    *("a @ https://user:${PW}@x/a-1.zip", "a @ https://[::1]/a-1.zip", f"a @ {PLACE}/a%2Dz.whl", f"a @ {PLACE}/x.whl"),
]


@pytest.mark.parametrize("line", REQUIREMENTS_REFUSED)
def test_a_requirement_that_packaging_takes_and_uv_refuses(line: str) -> None:
    assert requirement_fault(line, Requirement(line))


@pytest.mark.parametrize("line", REQUIREMENTS_TAKEN)
def test_a_requirement_that_both_take(line: str) -> None:
    assert requirement_fault(line, Requirement(line)) == ""
