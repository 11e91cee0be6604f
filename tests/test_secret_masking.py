import json

import pytest

from tw_autogen import open_session, secret_masking
from tw_autogen.kernel.guest.files import folder_listing
from tw_autogen.kernel.guest.files.folder_listing import is_private
from tw_autogen.secret_masking import is_secret_file, mask_named, mask_summary, redactor
from tw_autogen.testing import ScriptedModel, codes, plans


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ('"Incorrect API key: sk-abcdef1234567890."', '"Incorrect API key: [secret]."'),
        ('"Authorization: Bearer abcdef.ghijkl.mnop"', '"Authorization: Bearer [secret]"'),
        ('"postgresql://me:pa55@db:5432/shop failed"', '"postgresql://me:[secret]@db:5432/shop failed"'),
        ('"redis://:pa55word@cache:6379/0 failed"', '"redis://:[secret]@cache:6379/0 failed"'),
        (f'"github_pat_{"1aB_" * 20} glpat-{"x" * 20}"', '"[secret] [secret]"'),
        (f'"sk_live_{"1a" * 12} pk_live_{"1a" * 12} npm_{"a" * 36}"', f'"[secret] pk_live_{"1a" * 12} [secret]"'),
        (f'"SG.{"a1" * 11}.{"b2" * 20} xoxe-{"1" * 12} ASIA{"A1" * 8}"', '"[secret] [secret] [secret]"'),
        (
            '"-----BEGIN RSA PRIVATE KEY-----\\nMIIEpAIBAAKCAQEAx/Y=\\n-----END RSA PRIVATE KEY-----"',
            '"-----BEGIN RSA PRIVATE KEY-----[secret]-----END RSA PRIVATE KEY-----"',
        ),
        ('"the word planted-in-env came"', '"the word [secret] came"'),
        ('"a risk-averse task at 10:30 in http://host:80/x@y"', '"a risk-averse task at 10:30 in http://host:80/x@y"'),
        ('"short"', '"short"'),
    ],
)
def test_secrets_are_masked_and_other_words_are_left(line, masked):
    redact = redactor({"SHOP_API_KEY": "planted-in-env", "KEYBOARD": "short"})

    assert redact(line) == masked


@pytest.mark.parametrize(
    ("name", "summary", "masked"),
    [
        ("api_token", "'a1b2c3d4e5f6'", "[secret]"),
        ("password", "'correct horse'", "[secret]"),
        ("client_secret", f"3000 characters, '{'a1' * 30}…'", "3000 characters, [secret]"),
        ("shop", "2 keys: {'password': 'hunter2', 'n': 1}", "2 keys: {'password': '[secret]', 'n': 1}"),
        ("credentials", "2 items: ['me', 'hunter2']", "2 items: [secret]"),
        ("url", "'db://me:pa55@host'", "'db://me:[secret]@host'"),
        ("password", "12345678", "[secret]"),
        ("token", "'the'", "'the'"),
        ("max_tokens", "12345678", "12345678"),
        ("rows", "3 items: [1, 2, 3]", "3 items: [1, 2, 3]"),
    ],
)
def test_secrets_in_what_a_kernel_says_of_a_variable_are_masked(name, summary, masked):
    assert mask_summary(name, summary) == masked


def test_a_quote_in_a_secret_does_not_hide_it():
    assert redactor({"DB_PASSWORD": 'pass"word\\x'})('{"e": "pass\\"word\\\\x"}') == '{"e": "[secret]"}'


@pytest.mark.parametrize(
    ("name", "value", "line", "masked"),
    [
        ("POSTGRES_PASSWORD", "postgres", '{"c": "postgresql+psycopg://db"}', None),
        ("POSTGRES_PASSWORD", "postgres", '{"c": "a\\npostgres b"}', '{"c": "a\\n[secret] b"}'),
        ("SSH_KEY_DIR", "/home/somebody", '{"path": "/home/somebody/a.png"}', None),
        ("SSH_KEY", "/usr/bin", '{"path": "/usr/bin/env"}', None),
        ("DB_PASSWORD", "20240101", '{"seq": 20240101}', None),
        ("DB_PASSWORD", "20240101", '{"out": "pw 20240101"}', '{"out": "pw [secret]"}'),
        ("DB_PASSWORD", "20240101", "pw 20240101 20240101.5x", "pw [secret] [secret].5x"),
        ("DB_PASSWORD", " s3cr3t-w0rd\n", '{"out": "s3cr3t-w0rd was refused"}', '{"out": "[secret] was refused"}'),
        ("DB_PASSWORD", "hunter2hunter2", '{"out": "xhunter2hunter2x"}', '{"out": "x[secret]x"}'),
        (
            "MY_TOKEN",
            'ab"cd\\ef123',
            json.dumps({"r": json.dumps({"t": 'ab"cd\\ef123'})}),
            '{"r": "{\\"t\\": \\"[secret]\\"}"}',
        ),
    ],
)
def test_a_value_that_is_a_word_a_number_or_a_path_masks_no_other_text(name, value, line, masked):
    assert redactor({name: value})(line) == (masked or line)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "KEYSPACE",
            "CASSANDRA_KEYSPACE",
            "KEYCLOAK_REALM",
            "KEYBOARD_LAYOUT",
            "XKB_KEYMAP",
            "TOKENIZERS_PARALLELISM",
        ),
        *("TOKEN_AUDIENCE", "TOKEN_TYPE", "KEY_COLUMN", "SECRET_STORE", "PASSWORD_POLICY", "TOKENIZER", "KEYWORDS"),
        *("SORT_KEY", "PARTITION_KEY", "DB_PRIMARY_KEY", "MAX_TOKENS", "CREDENTIAL_PROVIDER", "SECRETARY"),
    ],
)
def test_a_variable_that_is_only_called_like_a_secret_masks_no_data(name):
    assert redactor({name: "customers"})("pd.read_csv('customers.csv')") == "pd.read_csv('customers.csv')"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "SHOP_KEY",
            "OPENAI_API_KEY",
            "OPENAI_API_KEY_2",
            "APIKEY",
            "openaiApiKey",
            "AWS_SECRET_ACCESS_KEY",
            "API_KEYS",
        ),
        *("HF_TOKEN", "GH_TOKEN_RO", "AWS_SESSION_TOKEN", "MYTOKEN", "TOKEN", "TOKEN1", "PGPASSWORD", "DB_PASSWD"),
        *("DB_PASSWORD_PROD", "SECRET_KEY_BASE", "STRIPE_SECRET_LIVE", "DJANGO_SECRET", "credentials", "MYSQL_PWD"),
    ],
)
def test_the_value_of_a_variable_that_is_called_a_secret_is_masked_whatever_it_looks_like(name):
    assert redactor({name: "customers"})("read customers") == "read [secret]"


@pytest.mark.parametrize("name", ["TOKEN_GITHUB", "PASSWORD_OF_DB", "KEY_OPENAI", "AWS_ACCESS_KEY_ID"])
def test_a_word_for_a_secret_within_a_name_masks_what_looks_made(name):
    assert redactor({name: "a1b2c3d4"})("read a1b2c3d4") == "read [secret]"
    assert redactor({name: "https://v2.x.org"})("read https://v2.x.org") == "read https://v2.x.org"


SHOWN = [
    "key: customer_identifier",
    "sort key: customer_identifier",
    "max_token: 100000000",
    "tokenizer: bert-base-uncased",
    "foreign_key: orders.customer_id",
    "password: null",
    "password: <your password>",
    "api_key: $SHOP_KEY",
    "api_key: prefix-$SHOP_KEY",
    "api_key: ${SHOP_KEY}",
    'note: "it\'s a \\"token\\" of 12345678"',
    "monkey=12345678901",
    "bearer authentication",
]
MASKED = [
    ("PGPASSWORD=hunter2hunter2", "hunter2hunter2"),
    ('{"dbPassword": "hunter2hunter2"}', "hunter2hunter2"),
    ('{"clientSecret": "abcdef1234567890"}', "abcdef1234567890"),
    ('{"openaiApiKey": "abcdef1234567890"}', "abcdef1234567890"),
    ('password: "correct horse battery staple"', "correct horse battery staple"),
    ('password: "p@ss;word123456"', "p@ss;word123456"),
    ('password = "ab,cdefghijkl"', "ab,cdefghijkl"),
    ("password: hunter2", "hunter2"),
    ('password: "it\'s-me-1234"', "it's-me-1234"),
    ("password = 'say \"hi\" twice'", 'say "hi" twice'),
    (r'{"password": "a\"b\\cdefgh", "rows": "10"}', r"a\"b\\cdefgh"),
    ("DB_PASSWORD=Summer$2024", "Summer$2024"),
    ('"login": "client --password=\'hunter2hunter2\' -v"', "hunter2hunter2"),
    ('note: "password: hunter2hunter2"', "hunter2hunter2"),
    ("db_pwd=hunter2hunter2", "hunter2hunter2"),
    ("signing_key: abcdef1234567890", "abcdef1234567890"),
    ('"password": ["hunter2hunter2"]', "hunter2hunter2"),
    ("<password>hunter2hunter2</password>", "hunter2hunter2"),
    ("machine x login y password hunter2hunter2", "hunter2hunter2"),
    ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA=="),
    ("authorization: bearer abcdefghijklmnop", "abcdefghijklmnop"),
    ("note gsk_abcdefghijklmnopqrstuvwxyz0123", "gsk_abcdefghijklmnopqrstuvwxyz0123"),
    ("note AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    ("x eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijklm", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijklm"),
]


@pytest.mark.parametrize("line", SHOWN)
def test_what_is_no_secret_of_a_settings_file_is_shown(line):
    assert mask_named(line) == line


@pytest.mark.parametrize(("line", "secret"), MASKED)
def test_a_secret_of_a_settings_file_is_masked(line, secret):
    assert mask_named(line) == line.replace(secret, "[secret]")


def test_a_named_secret_is_masked_to_its_end():
    assert mask_named(f'{{"token": "{"a1" * 400}"}}') == '{"token": "[secret]"}'


DATA = [
    *(
        "tokens.csv",
        "token.tsv",
        "key.csv",
        "keys.csv",
        "password_survey.csv",
        "tokens_per_model.csv",
        "key_rates.xlsx",
    ),
    *("credentials_check.csv", "secret_santa.xlsx", "secrets_of_success.md", "Token Counts.csv.gz", "keywords.csv"),
    *("passwords_by_country.parquet", "turkey.csv", "access_log.csv", "api_usage.csv", "secretary.docx"),
]
SECRETS = [
    *(
        "passwords.csv",
        "My Passwords.xlsx",
        "Chrome Passwords (2).csv",
        "credentials.csv",
        "accessKeys.csv",
        "rootkey.csv",
    ),
    *("passwords_old.csv", "api-keys.csv", "secrets.md", "db_credentials_2024.csv.gz", "token.json", "tokens.json"),
    *("secrets.json", "api_token.txt", "passwords.txt", "credentials", "id_rsa", "server.pem", "db_credentials.json"),
]


@pytest.mark.parametrize("name", [*DATA, *SECRETS])
def test_a_table_is_one_of_secrets_only_if_its_name_ends_so_for_requests_and_lists_of_folders_alike(name):
    assert is_secret_file(name) is is_private(name) is (name in SECRETS)


def test_the_suffixes_of_tables_and_texts_are_the_same_in_the_kernel():
    assert {*secret_masking._TABLES_AND_TEXTS} == {*folder_listing._TABLES_AND_TEXTS}


def test_no_secret_reaches_the_journal(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", "planted-in-env")
    code = codes("print('planted-in-env', 'sk-0123456789abcdef')")
    with (
        ScriptedModel([plans("show"), code, plans("Done.", to="User")]) as model,
        open_session(model, folder=tmp_path) as session,
    ):
        session.ask("show planted-in-env")
        written = session.journal.read_text()

    assert "planted-in-env" not in written
    assert "sk-0123456789abcdef" not in written
    assert written.count("[secret]") > 3
