"""Secrets in every position and spelling are redacted, and harmless text is unchanged."""

# tables of texts

from __future__ import annotations

import io
import json
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.hosts import healthy, with_variables
from wheel_checks.facts.host.codec import to_json
from wheel_checks.facts.host.redaction import redact as redact_facts
from wheel_checks.facts.host.software import IndexSetting
from wheel_checks.formats.secrets import is_secret_name, redact, redact_text, redacted
from wheel_checks.model import CheckResult, Evidence, Fix, Outcome, Overview, Report, Severity, Subject
from wheel_checks.report import FORMATS, render
from wheelproof.doctor.explain import explain

NAMES = [
    *(
        "token",
        "access_token",
        "private_token",
        "auth_token",
        "refresh-token",
        "id_token",
        "X-Amz-Security-Token",
        "key",
    ),
    *(
        "api_key",
        "apikey",
        "api-key",
        "accessKey",
        "access_key",
        "private_key",
        "secret_key",
        "client_secret",
        "secret",
    ),
    *(
        "password",
        "passwd",
        "pwd",
        "passphrase",
        "jwt",
        "sig",
        "signature",
        "X-Amz-Signature",
        "X-Amz-Credential",
        "sas",
    ),
    *("auth", "session_id", "credential", "PASSWORD", "Token", "%74oken", "anything", "t", "q2"),
]
QUERY = [
    "https://example.org/simple/?{name}={secret}",
    "https://example.org/f.whl?v=1&{name}={secret}&arch=x86_64",
    "https://example.org/f.whl?v=1;{name}={secret}#sha256=00",
    "https://example.org/f.whl#{name}={secret}",
    "https://example.org/a;{name}={secret}/f.whl",
    "wss://example.org/?{name}={secret}",
    "(see https://example.org/x?{name}={secret}).",
    '{{"url": "https://example.org/x?{name}={secret}", "other": 1}}',
    "HTTPSConnectionPool(host='example.org', port=443): Max retries exceeded with url: https://e.org/?{name}={secret}",
]
NAMED = [
    "{name}={secret}",
    "export {name}={secret}",
    "MY_{name}={secret}",
    '{name}="{secret}"',
    "'{name}': '{secret}'",
    '"{name}": "{secret}"',
    "{name}: {secret}",
    "{name} = {secret}",
    "--{name} {secret}",
    "--{name}={secret} --verbose",
    "[global]\n{name} = {secret}\n",
]
ANYWHERE = [
    "https://user:{secret}@example.org/simple/",
    "https://{secret}@example.org/simple/",
    "https://{secret}:x-oauth-basic@example.org/simple/",
    "https://__token__:{secret}@example.org:8443/simple",
    "https://user:pa/{secret}@example.org/simple/",
    "git+https://oauth2:{secret}@example.org/group/project.git@v1",
    "git+ssh://git:{secret}@example.org/project.git",
    "demo @ https://user:{secret}@example.org/demo-1.0-py3-none-any.whl",
    "--extra-index-url https://user:{secret}@example.org/simple",
    "user:{secret}@example.org:5432/db",
    "//user:{secret}@example.org/simple",
    "index-url=https%3A%2F%2Fuser%3A{secret}%40example.org%2Fsimple",
    "global.index-url='https://user:{secret}@example.org/simple'",
    "ERROR: 401 Client Error: Unauthorized for url: https://user:{secret}@example.org/simple/demo/",
    "error: Failed to fetch: `https://user:{secret}@example.org/simple/demo/`",
    '{{"url": "https://user:{secret}@example.org/demo.whl", "archive_info": {{}}}}',
    '[[index]]\nurl = "https://user:{secret}@example.org/simple"\n',
    "machine example.org login user password {secret}",
    "default login user password {secret}",
    "machine example.org\n  login user\n  password {secret}\n",
    "Authorization: Bearer {secret}",
    "authorization: Basic {secret}==",
    "Authorization: token {secret}",
    "'Authorization': 'Bearer {secret}'",
    "Proxy-Authorization: Basic {secret}",
    "Cookie: session={secret}",
    "Set-Cookie: id={secret}; Path=/",
    "X-Api-Key: {secret}",
    "X-JFrog-Art-Api-Key: {secret}",
    "PRIVATE-TOKEN: {secret}",
    "bearer {secret}",
    "curl -u user:{secret} https://example.org",
    "curl --user user:{secret} https://example.org",
    "hf_{secret}{secret}",
    "ghp_{secret}{secret}",
    "github_pat_{secret}{secret}",
    "glpat-{secret}{secret}",
    "pypi-{secret}{secret}",
    "nvapi-{secret}{secret}",
    "xoxb-{secret}",
    "npm_{secret}{secret}{secret}",
    "https://example.org/ghp_{secret}{secret}/simple/",
    "eyJhbGciOiJIUzI1NiJ9.{secret}.x",
    "-----BEGIN RSA PRIVATE KEY-----\n{secret}\n-----END RSA PRIVATE KEY-----",
]
AROUND = ["{}", "line 1\n{}\nline 3", "E   requests.exceptions.HTTPError: {}", '  File "a.py", line 3, in x\n    {}']
# Begins with a letter and has both kinds, as generated secrets do; a mere word or number is not one in "key=value".
SECRETS = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{9,20}[0-9][a-zA-Z]", fullmatch=True)
TEXTS = st.one_of(
    st.tuples(st.sampled_from(QUERY), st.sampled_from(NAMES)),
    st.tuples(st.sampled_from(NAMED), st.sampled_from(NAMES[:-4])),
    st.tuples(st.sampled_from(ANYWHERE), st.just("")),
)


@pytest.mark.parametrize("template", [*QUERY, *NAMED])
def test_the_value_of_a_secret_name_is_gone(template: str) -> None:
    texts = [template.format(name=name, secret="aB3dE5fG7hJ9kL1mNo") for name in NAMES[:-4]]
    assert [text for text in texts if "aB3dE5fG7h" in redact_text(text)] == []


@pytest.mark.parametrize("around", AROUND)
def test_a_secret_is_gone_by_its_place_or_its_shape(around: str) -> None:
    texts = [around.format(template.format(secret="aB3dE5fG7hJ9kL1mNo")) for template in ANYWHERE]
    assert [text for text in texts if "aB3dE5fG7h" in redact_text(text)] == []


@settings(max_examples=400)
@given(TEXTS, SECRETS, st.sampled_from(AROUND))
def test_no_planted_secret_appears(text: tuple[str, str], secret: str, around: str) -> None:
    template, name = text
    shown = redact_text(around.format(template.format(name=name, secret=secret)))
    assert secret not in shown
    assert redact_text(shown) == shown  # clean text is unchanged


@settings(max_examples=60)
@given(TEXTS, SECRETS)
def test_no_format_of_a_report_shows_it(text: tuple[str, str], secret: str) -> None:
    planted = text[0].format(name=text[1], secret=secret)
    result = CheckResult(
        "WHL101",
        "a rule",
        Outcome.FAIL,
        Severity.ERROR,
        planted,
        evidence=(Evidence(planted, planted, planted),),
        fix=Fix(planted),
    )
    subject = Subject(
        planted, "wheel", planted, {"url": planted, "all": [planted], "deep": {planted: (planted,)}}, (result,)
    )
    report = Report(
        "verify", "0", "2026-11-20T09:00:00Z", 0.1, (subject,), overview=Overview(planted, notes=(planted,))
    )
    for name in FORMATS:
        stream = io.StringIO()
        render(report, stream, name, **({"width": 5000} if name == "text" else {}))
        assert secret not in stream.getvalue()


@settings(max_examples=60)
@given(TEXTS, SECRETS)
def test_saved_facts_do_not_hold_it(text: tuple[str, str], secret: str) -> None:
    planted = text[0].format(name=text[1], secret=secret)
    facts = with_variables(healthy(), NCCL_DEBUG_FILE=planted, PIP_EXTRA_INDEX_URL=planted)
    facts = replace(facts, indexes=(IndexSetting("pip", "index-url", planted, planted),))
    assert secret not in json.dumps(to_json(redact_facts(facts, servers=True)))


@settings(max_examples=60)
@given(TEXTS, SECRETS)
def test_explain_does_not_quote_it(text: tuple[str, str], secret: str) -> None:
    planted = " ".join(text[0].format(name=text[1], secret=secret).split())
    report = explain(f"GPU is lost. {planted}\nCUDA driver is a stub library {planted}\n".encode(), "a.log")
    stream = io.StringIO()
    render(report, stream, "json")
    assert "GPU" in stream.getvalue()
    assert secret not in stream.getvalue()


@pytest.mark.parametrize(
    "text",
    [
        "jwt: the wheel installs 9 files",
        "pyjwt: 9 files",
        "secretstorage: libdbus-1.so.3 is needed",
        "torch==2.11.0+cu130 --hash=sha256:" + "0123456789abcdef" * 4,
        "https://example.org/f-1.0-py3-none-any.whl#sha256=" + "0123456789abcdef" * 4,
        "https://example.org/simple/?page=2&arch=aarch64&version=2.11.0",
        "git+https://example.org/owner/project.git@v1.0#egg=demo&subdirectory=python",
        "https://example.org/#installation",
        "https://example.org/@scope/package",
        "git@example.org:owner/project.git",
        "write to me@example.org, or mailto:me@example.org",
        "image:tag@sha256:" + "ab" * 32,
        "pkg:pypi/torch@2.1.0, npm:foo@1.2.3",
        "num_tokens=512 max_tokens: 4096 pad_token_id=0 eos_token='</s>' tokenizer: llama",
        "SyntaxError: invalid token: identifier",
        "KeyError: 'model.layers.0.weight'; key=embedding.weight",
        "Key was rejected by service",
        "basic configuration, Basic Configuration, bearer of news",
        "PWD=/home/me OLDPWD=/tmp",
        "CUDA_VISIBLE_DEVICES=0,1 NCCL_DEBUG=INFO PIP_TRUSTED_HOST=example.org UV_KEYRING_PROVIDER=subprocess",
        "the password file is /etc/passwd; api_key_file=/run/secrets/x",
        "signature: (Tensor a, int b) -> Tensor",
        "undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx11",
        "python_version > '3.10' and platform_machine == 'aarch64'",
        "Authentication failed; 11 passed, 2 failed",
        "a token, a secret and a password",
        "pass=11 fail=2",
        "GPU-0 [0000:01:00.0] sm_90a cubin 0x7f3a",
        "-r requirements.txt -c constraints.txt --user --upgrade",
    ],
)
def test_what_is_harmless_stays(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "NVIDIA_API_KEY", "PIP_PASSWORD", "X-Amz-Signature", "key", "MY_KEY", "jwt"]
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["TOKENIZERS_PARALLELISM", "UV_KEYRING_PROVIDER", "max_tokens", "monkey", "author", "v"]
)
def test_names_of_other_things(name: str) -> None:
    assert not is_secret_name(name)


def test_values_of_all_kinds_are_walked_and_kept_when_they_are_clean() -> None:
    seen = b"seen before".decode()  # equal to the next one, and not the same object
    redact_text("seen before")
    clean = {"a": ("x", ["y", seen]), "b": Evidence("label", "value")}
    assert redacted(clean) is clean
    dirty = {"a": ("https://u:p@h/", ["y"]), "b": Evidence("label", "password=x"), "token=abc1defg": 1}
    assert redacted(dirty) == {
        "a": ("https://h/", ["y"]),
        "b": Evidence("label", "password=****"),
        "token=****": 1,
    }


def test_a_signature_is_hidden_and_the_url_is_still_read() -> None:
    shown = redact("https://example.org/f.whl?X-Amz-Signature=s3cret&x=1")
    assert shown == "https://example.org/f.whl?X-Amz-Signature=****&x=1"


UNITS = [
    "a.",
    "token",
    "token=",
    "://",
    "a@",
    "//a",
    "login x password ",
    "key ",
    "--key ",
    "%3a%2f%2f",
    "-u a",
    "x-a-key",
    "eyJ",
]


@pytest.mark.parametrize(
    "unit", [*UNITS, "bearer ", "a:b@", "https://a?b=c&", "-----BEGIN PRIVATE KEY-----", "machine a "]
)
def test_time_grows_with_the_text(unit: str) -> None:
    def seconds(size: int) -> float:
        text = (unit * size)[:size]
        start = time.process_time()
        redact_text(text)
        return time.process_time() - start

    assert seconds(80_000) < 8 * seconds(20_000) + 0.2
