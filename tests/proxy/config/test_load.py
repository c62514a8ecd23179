"""Valid files, variables, and paths relative to the file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dragoman.proxy.config.envfile import read_env
from dragoman.proxy.config.load import ConfigErrors, check, check_text, load
from dragoman.proxy.config.models import Config
from dragoman.proxy.config.starter import write_starter

STARTER = write_starter([], embedded=True)
EXAMPLES = Path(__file__).parents[3] / "examples"
BASE = 'providers: {p: {dialect: openai, base_url: "http://127.0.0.1:1/v1"}}\nmodels: {m: {targets: [{provider: p}]}}\n'


def load_text(text: str, **env: str) -> Config:
    return check_text(text, "x.yaml", env).config


def codes(text: str, **env: str) -> list[str]:
    with pytest.raises(ConfigErrors) as caught:
        load_text(text, **env)
    return [problem.code for problem in caught.value.problems]


def test_unset_values_have_defaults() -> None:
    config = load_text(BASE)
    assert config.server.port == 8080
    assert config.server.body_limit == 32 * 1024**2
    assert config.timeouts.first_token == 120.0
    assert (config.providers["p"].profile, config.providers["p"].protocols) == (None, None), "the dialect decides"
    assert config.models["m"].targets[0].weight == 1


def test_the_example_file_is_valid() -> None:
    checked = check(EXAMPLES / "dragoman.yaml", read_env(EXAMPLES / "dragoman.env"))
    assert not checked.warnings
    assert {provider.dialect for provider in checked.config.providers.values()} == {
        "openai",
        "databricks",
        "azure",
        "mindie",
    }
    assert checked.config.providers["ascend"].timeouts is not None
    assert checked.config.providers["ascend"].timeouts.connect == 2.0


def test_the_example_with_fakes_needs_no_variables() -> None:
    checked = check(EXAMPLES / "fakes.yaml", {})
    assert not checked.warnings
    ports = [(provider.base_url or "").partition("127.0.0.1:")[2][:4] for provider in checked.config.providers.values()]
    assert ports == ["9001", "9002", "9003", "9004", "9005"]


def test_the_starter_file_is_valid() -> None:
    checked = check_text(STARTER, "dragoman.yaml", {})
    assert not checked.warnings
    assert list(checked.config.models) == ["dragoman-mini"]


def test_the_starter_file_is_valid_with_every_suggestion_uncommented() -> None:
    """Prose begins with a capital letter, what can be uncommented does not."""
    text = re.sub(r"^( *)# ([ a-z-])", r"\1\2", STARTER[STARTER.index("\nserver:") :], flags=re.MULTILINE)
    text = text.replace("tls: {ca: ca.pem}", "tls: {}")
    text = re.sub("^ +api_key_file: .*\n", "", text, flags=re.MULTILINE)  # instead of a key that is there
    names = (
        "OPENAI_API_KEY",
        "DATABRICKS_TOKEN",
        "AZURE_INFERENCE_CREDENTIAL",
        "DRAGOMAN_KEY",
        "PROXY_PASSWORD",
        "AZURE_OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
    )
    env = dict.fromkeys(names, "x")
    config = check_text(text, "dragoman.yaml", env).config
    assert list(config.providers) == ["embedded", "openai", "lakehouse", "foundry", "azure-openai", "claude", "ascend"]
    assert list(config.models) == ["dragoman-mini", "fast", "careful"]
    assert [key.name for key in config.keys] == ["me"]


def test_variables_are_substituted_once() -> None:
    text = (
        'server: {port: "${PORT}", header_timeout: "${WAIT:-3s}", host: "${HOST:-}127.0.0.1"}\n'
        'policy: {replies: "${REPLIES:-off}"}\n'
        'keys: [{name: a, key: "a$${b}${KEY}"}]\n' + BASE
    )
    config = load_text(text, PORT="81", KEY="${PORT}$", REPLIES="")
    assert config.server.port == 81
    assert config.server.header_timeout == 3.0
    assert config.server.host == "127.0.0.1"
    assert config.policy.replies == "off"
    assert config.keys[0].key.get_secret_value() == "a${b}${PORT}$", "a value is not substituted again"


def test_variables_in_keys_of_mappings_are_not_substituted() -> None:
    assert codes('models: {"${X}": {targets: [{provider: p}]}}\n' + BASE.splitlines()[0], X="m") == ["bad-name"]


def test_a_file_can_be_a_variable(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret-in-a-file\n")
    (tmp_path / "dragoman.yaml").write_text('keys: [{name: a, key: "${file:key}"}]\n' + BASE)
    config = load(tmp_path / "dragoman.yaml", {})
    assert config.keys[0].key.get_secret_value() == "secret-in-a-file"


def test_large_binary_and_unreadable_files_are_refused_as_variables(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 65537)
    (tmp_path / "binary").write_bytes(b"\xff")
    (tmp_path / "a.yaml").write_text(
        'keys: [{name: a, key: "${file:large}"}, {name: b, key: "${file:binary}"}, {name: c, key: "${file:.}"}]\n'
        + BASE
    )
    with pytest.raises(ConfigErrors) as caught:
        load(tmp_path / "a.yaml", {})
    assert [problem.code for problem in caught.value.problems] == ["too-large", "not-text", "unreadable"]


def test_tls_files_are_relative_to_the_files_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "ca.pem").write_text("x")
    file = folder / "dragoman.yaml"
    tls = f"tls: {{ca: ca.pem, cert: {folder / 'ca.pem'}}}"
    file.write_text(BASE.replace('/v1"', f'/v1", {tls}'))
    monkeypatch.chdir(tmp_path)
    for path in (file, Path("etc/dragoman.yaml")):
        found = load(path, {}).providers["p"].tls
        assert found.ca == found.cert == str(folder / "ca.pem")


def test_the_stores_path_is_relative_to_the_files_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    file = tmp_path / "x.yaml"
    for path, expected in (
        ("responses.db", tmp_path / "responses.db"),
        ("/a/b.db", Path("/a/b.db")),
        ("~/b.db", Path("/home/me/b.db")),
        ("${DB}", tmp_path / "c.db"),
    ):
        file.write_text(BASE + f'store: {{path: "{path}"}}\n')
        assert load(file, {"DB": "c.db"}).store.path == str(expected)
    assert load_text(BASE).store.path is None


@pytest.mark.parametrize(
    ("store", "found"),
    [
        ("{kind: memory, path: x.db}", ["wrong-store"]),
        ("{kind: none, path: x.db}", ["wrong-store"]),
        ("{max_response: 2GiB}", ["conflicting-sizes"]),
        ("{max_size: 1MiB, max_response: 2MiB}", ["conflicting-sizes"]),
        ("{path: ~nobody-of-that-name/x.db}", ["unknown-home"]),
        ("{retention: 0s}", ["invalid-value"]),
        ("{kind: postgres}", ["invalid-value"]),
    ],
)
def test_contradictory_stores_are_refused(store: str, found: list[str]) -> None:
    assert codes(BASE + f"store: {store}\n") == found


def test_a_store_smaller_than_the_default_response_is_valid() -> None:
    store = load_text(BASE + "store: {max_size: 1MiB, retention: 30d}\n").store
    assert (store.max_size, store.retention) == (1024**2, 720 * 3600.0)


def test_all_problems_are_reported_in_the_order_of_the_file() -> None:
    text = """\
models: {m: {targets: [{provider: q}]}}
server: {port: x, hots: localhost}
providers: {p: {dialect: x, base_url: "${X}"}}
"""
    expected = ["unknown-provider", "invalid-value", "unknown-key", "invalid-value", "unset-variable"]
    assert codes(text) == expected


def test_a_value_has_at_most_one_problem() -> None:
    text = BASE.replace("openai", "mindie").replace("http://", "http://a:b@h").replace('/v1"', '/v1", profile: x')
    assert codes(text) == ["bad-url", "invalid-value"]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
def test_loopback_needs_no_keys(host: str) -> None:
    assert load_text(f'server: {{host: "{host}"}}\n' + BASE).server.host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "localhost.example.org"])
def test_other_hosts_need_keys(host: str) -> None:
    text = f'server: {{host: "{host}"}}\n' + BASE
    assert codes(text) == ["open-host"]
    assert load_text(text + "keys: [{name: a, key: b}]").server.host == host
    assert check_text(text, "x", {}, insecure=True).config.server.host == host


def test_with_insecure_keys_over_plain_http_are_a_warning() -> None:
    text = BASE.replace("127.0.0.1:1/v1", 'vllm/v1", api_key: "k')
    assert codes(text) == ["plain-http"]
    checked = check_text(text, "x", {}, insecure=True)
    assert [problem.code for problem in checked.warnings] == ["plain-http"]


def test_fallbacks_may_lead_through_patterns() -> None:
    target = "targets: [{provider: p}]"
    models = f'  "gpt-*": {{{target}, fallbacks: [m]}}\n  n: {{{target}, fallbacks: [gpt-5]}}\n  m: {{{target}}}\n'
    assert load_text(BASE.splitlines()[0] + "\nmodels:\n" + models).models["n"].fallbacks == ["gpt-5"]


def test_a_key_may_name_a_model_that_a_pattern_covers() -> None:
    patterns = ["gpt-5", "*", "gpt-4*"]
    text = BASE.replace("{m:", '{"gpt-*":') + f"keys: [{{name: a, key: b, models: {patterns}}}]"
    assert load_text(text).keys[0].models == patterns


def test_unset_timeouts_never_conflict() -> None:
    assert load_text("timeouts: {total: 3s}\n" + BASE).timeouts.total == 3.0


def test_secrets_are_masked_in_the_configurations_text() -> None:
    config = load_text("keys: [{name: a, key: top-secret}]\n" + BASE.replace('/v1"', '/v1", api_key: also-secret'))
    assert "secret" not in repr(config)


def test_an_env_file_has_quotes_comments_and_exports(tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text("# all\nA=1\nexport B = two words # note\n\nC=\"x # y\"\nD='$A'\nE=\nF=a=b\n")
    assert read_env(file) == {"A": "1", "B": "two words", "C": "x # y", "D": "$A", "E": "", "F": "a=b"}


def test_bad_env_files_are_refused_without_quoting_them(tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text('A=1\nsecret-by-itself\n1A=2\nB="x\n')
    with pytest.raises(ConfigErrors) as caught:
        read_env(file)
    assert [problem.line for problem in caught.value.problems] == [2, 3, 4]
    assert "secret" not in str(caught.value)
    for path, word in ((tmp_path, "directory"), (tmp_path / "none", "No such file")):
        with pytest.raises(ConfigErrors, match=word):
            read_env(path)
    file.write_bytes(b"\xff")
    with pytest.raises(ConfigErrors, match="UTF-8"):
        read_env(file)
