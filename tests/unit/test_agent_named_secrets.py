"""What stands behind a name like PASSWORD: a secret is masked, code is not."""

from pathlib import Path

import pytest

import constrained_agent
from constrained_agent.agent import named_secrets
from constrained_agent.agent.secrets import Masker

SECRETS = [
    "DB_PASSWORD=|hunter2hunter2|",
    "export DB_PASSWORD=|swordfish|",
    "DB_PASSWORD=|p@$$w0rd(x)1|",
    "PASSWORD=|12345678|",
    "API_KEY=|abcdefgh|",
    "CLIENT_SECRET=|x!y@z#w|",
    "TOKEN=|abcd1234| make it",
    "PRIVATE_KEY='|abcdef123|'",
    "db_password=|hunter2|",
    "host=db password=|hunter2| user=x",
    '"password": "|hunter2|"',
    '"password": "|swordfish|"',
    '"password": "|correct-horse-battery|"',
    '{\\"password\\": \\"|hunter2|\\", \\"a\\": 1}',
    "'db_password': '|p@ss\"w0rd|',",
    "{'DB_PASSWORD': '|hunter2hunter2|', 'A': 'b'}",
    "password: |hunter2|",
    "  password: |swordfish|  # of the test server",
    "12│  db_password: |s3cr3t!x|",
    "+    admin_passwd: |swordfish|",
    'password = "|hunter2|"',
    'password: str = "|hunter2|"',
    'const password: string = "|hunter2|";',
    'password := "|hunter2|"',
    'password=b"|hunter2|"',
    'os.environ["DB_PASSWORD"] = "|hunter2|"',
    'connect(host, password="|hunter2|")',
    'api_key: "|abcdefgh1|"',
    "apiKey = '|a1B2c3D4|'",
    'client_secret = "|swordfish|"',
    "access_token: |abc123def456|",
    'auth_token = "|tok12345|"',
    "got password: |hunter2hunter2|",
    "--password=|hunter2|",
    "DB_PASSWORD=|hunter2|\\nHOME=/x",
]
"""The secret stands between bars."""

SOURCES = {".py", ".toml", ".md", ".html", ".js", ".json", ".txt", ".cfg"}

NO_SECRETS = """
DB_PASSWORD=$PASSWORD
DB_PASSWORD=${PASSWORD:-x1y2z3}
DB_PASSWORD=$(cat /run/secrets/pw1)
DB_PASSWORD=%PASSWORD%
DB_PASSWORD=***
DB_PASSWORD=********
PASSWORD=changeme
PASSWORD=settings.PASSWORD
PASSWORD_FILE=/run/secrets/db_password1
EOS_TOKEN = "</s>"
password=os.environ["DB_PASSWORD"]
password = os.environ.get("X1")
password: str
password: str = ""
password: string;
password: string
password = None
password: Optional[str] = None
token: Uint8Array
token: Token
secret: SecretStr
password: <your password>
password: "<your password>"
password: "your-password-here"
password: "Please enter your password"
password = get_password()
password = getpass.getpass("Password: ")
password = user.password
password = first + second
password: !vault abc123
password: {{ vault_password1 }}
password = "{password1}"
"password": f"{user}-{x1}"
"password": "%(password)s"
"password": "password"
password=pw if pw else None
password = "/run/secrets/db1_password"
token = tokens[index1]
token = tokenizer.encode(text1)
token=token_id1
f(token=tok_1a2, x=3)
token = a1b2c3 if x else y
token = x86_64_abi
token = 0x1F2E3D4C
token: "#ddd0c0"
token: "https://auth.example.org/token2"
"token": "keyword"
token: 'keyword.operator.js'
token: string = "keyword"
token = "<|im_end|>"
token: end-of-text-2024
if token != 'abc123def456':
if token == "abc123def456":
std::Token::Kind2b3c
Unexpected token: identifier
SyntaxError: unexpected token: 'else'
max_token=409612
"secret": "db-credentials"
secret: db-credentials
api_key=args.api_key2
private_key = load_pem_private_key(data1)
"""


@pytest.mark.parametrize("line", SECRETS)
@pytest.mark.parametrize("around", ["{}", "before = 1\n{}\nafter: x"])
def test_secrets(line, around):
    before, secret, after = line.split("|")
    assert Masker().text(around.replace("{}", before + secret + after)) == around.replace(
        "{}", f"{before}***{after}"
    )


@pytest.mark.parametrize("line", NO_SECRETS.strip().split("\n"))
def test_code_types_references_and_placeholders(line):
    assert Masker().text(line) == line
    assert Masker().text(f"+    {line}") == f"+    {line}"


def test_names_of_members():
    assert named_secrets.is_secret("db_password", "hunter2")
    assert not named_secrets.is_secret("password_file", "hunter2")
    assert not named_secrets.is_secret("password", "short")


def test_nothing_in_our_own_sources_is_taken_for_a_secret():
    """A patch with something masked cannot be replayed, so source code must come through as it is."""
    folder = Path(constrained_agent.__file__).parent
    texts = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.suffix in SOURCES}
    assert len(texts) > 150
    masker = Masker()
    assert [path for path, text in texts.items() if masker.text(text) != text] == []
