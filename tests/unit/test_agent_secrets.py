"""What is taken for a secret when a run is written down, and what is not."""

import json

import pytest

from constrained_agent.agent.secrets import Masker

DRAWN = "x9K2mQ7vL4pR8sT1"
KEY_LINE = "MIIEpAIBAAKCAQEA75hB0tYzLqgT3v7y8Kk1l2m3n4o5p6q7r8s9t0u1v2w3x4y5"


@pytest.mark.parametrize(
    "secret",
    [
        "ghp_" + "a1B2" * 9,
        "gho_" + "a1B2" * 9,
        "github_pat_11ABCDEFG0" + "a1B2_" * 10,
        "sk-" + "a1B2" * 12,
        "sk-proj-" + "a1B2" * 12,
        "sk-ant-api03-" + "aB1_" * 20,
        "AKIAIOSFODNN7EXAMPLE",
        "xoxb-123456789012-abcdefghij",
        "AIza" + "aB1_" * 9,
        "hf_" + "aB1c" * 9,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    ],
)
@pytest.mark.parametrize("around", ["{}", "key: {}\n", '+KEY = "{}"', "12│{}", "a {} b"])
def test_keys_of_known_forms(secret, around):
    assert Masker().text(around.format(secret)) == around.format(f"***{secret[-4:]}")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"password = '{DRAWN}'", "password = '***8sT1'"),
        (f'"api_key": "{DRAWN}"', '"api_key": "***8sT1"'),
        ("E   KeyError: 'DB_PASSWORD=hunter2hunter2'", "E   KeyError: 'DB_PASSWORD=***'"),
        (f"DB_PASSWORD={DRAWN}", "DB_PASSWORD=***8sT1"),
        (f"token: {DRAWN}", "token: ***8sT1"),
        (f"+os.environ['SECRET_KEY'] = \"{DRAWN}\"", "+os.environ['SECRET_KEY'] = \"***8sT1\""),
        (f"Authorization: Bearer {DRAWN}", "Authorization: Bearer ***8sT1"),
        ("https://me:tok12345@host/a", "https://me:***@host/a"),
    ],
)
def test_values_behind_names(text, masked):
    assert Masker().text(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "task-loading-indicator-of-something-2",
        ".sk-loading-indicator-of-something { }",
        "token = tokenizer.encode_plain(text)[0]",
        "token: end-of-text-2024-of-a-long-name",
        "password = get_password_from_keyring_2()",
        "max_tokens=12345678901234567890",
        "secret_hash = hashlib.sha256(data)",
        "if text.startswith('-----BEGIN PRIVATE KEY-----'):\n    pass",
        "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** End Patch",
        "https://host:8080/a@b",
        r"(?:https?://)?(?:[\w.-]+@)?(?:localhost|127)",
        "f'postgres://{user}:{password}@{host}' and postgres://<user>:<password>@host",
        "index 3f2a9c1b8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a..0000000000000000000000000000000000000000",
    ],
)
def test_what_is_no_secret_stays(text):
    assert Masker({"PATH": "/usr/bin:/bin", "LANG": "en_US.UTF-8"}).text(text) == text


def test_private_keys_lose_their_body_also_in_listings_and_when_cut_off():
    lines = ["-----BEGIN RSA PRIVATE KEY-----", KEY_LINE, KEY_LINE, "abc=", "-----END RSA PRIVATE KEY-----"]
    listing = "\n".join(f"{n}│{line}" for n, line in enumerate(lines, 9))
    for text in ("\n".join(lines), "\\n".join(lines), listing, "\n".join(f"+{line}" for line in lines)):
        masked = Masker().text(f"before\n{text}\nafter")
        assert "MIIE" not in masked
        assert masked.startswith("before\n")
        assert masked.endswith("\nafter")
    masked = Masker().text("\n".join(lines[:3]) + "\nother words")
    assert "MIIE" not in masked
    assert masked.endswith("\nother words")


def test_values_of_the_environment_are_found_wherever_they_stand(tmp_path):
    environment = {
        "GITHUB_TOKEN": "plain words as token",
        "DB_PASSWORD": 'with "quotes"!',
        "SIGNING_KEY": f"line one of it\n{KEY_LINE}\n",
        "SSH_AUTH_SOCK": "/tmp/ssh-agent",
        "KEY_PASSWORD_FILE": str(tmp_path),
        "API_KEY": "true",
        "SOME_TOKEN": "localhost",
        "HOME": "/home/somebody-9",
        "OLDPWD": "/srv/elsewhere-9",
    }
    masker = Masker(environment)
    assert masker.text("say plain words as token!") == "say ***oken!"
    assert masker.text(json.dumps({"a": 'with "quotes"!'})) == '{"a": "***s\\"!"}'
    assert KEY_LINE not in masker.text(f"7│{KEY_LINE}")
    stays = f"true localhost /home/somebody-9 /srv/elsewhere-9 /tmp/ssh-agent {tmp_path}"
    assert masker.text(stays) == stays


def test_records_are_marked_where_something_was_masked():
    secret = "ghp_" + "a1B2" * 9
    record = {
        "event": "turn",
        "ids": [1, 2],
        "forced_chars": [3],
        "calls": [
            {"id": "1", "arguments": {"patch": f"+{secret}"}},
            {"id": "2", "arguments": {"token": DRAWN, "db_password": "hunter2", "password": "<password>"}},
        ],
        "faults": [{"kind": "x"}],
    }
    assert Masker().record(record) == {
        "event": "turn",
        "ids": None,
        "forced_chars": None,
        "calls": [
            {"id": "1", "arguments": {"patch": "+***a1B2"}, "masked": True},
            {
                "id": "2",
                "arguments": {"token": "***8sT1", "db_password": "***", "password": "<password>"},
                "masked": True,
            },
        ],
        "faults": [{"kind": "x"}],
        "masked": True,
    }
    clean = {"event": "note", "text": "nothing", "n": 1, "list": [1, "a", None]}
    assert Masker().record(clean) == clean


@pytest.mark.parametrize("name", ["DB_PASS", "SESSION_COOKIE", "MY_JWT", "NPM_TOKENS", "AUTH_HEADER"])
def test_what_is_kept_from_commands_is_masked_where_it_was_passed_on(name):
    assert Masker({name: "quite-s3cret-thing"}).text("it is quite-s3cret-thing.") == "it is ***hing."
