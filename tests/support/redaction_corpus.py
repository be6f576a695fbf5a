"""Texts with secrets and texts without, which the rates on `docs/reference/redaction.md` are counted over.

Nothing here is a secret: tokens are put together from their parts when a test runs, by a chance that always falls alike, so that
no scanner finds one in this file.
"""

import random
import string
from collections.abc import Iterator
from typing import Final, NamedTuple

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALNUM, HEX, WORD = LOWER + UPPER + DIGITS, DIGITS + "abcdef", LOWER + UPPER + DIGITS + "_-"


class Case(NamedTuple):
    """A text, the secret in it, and the form in which it is given."""

    form: str
    text: str
    secret: str


FORMS: Final = {
    "environment": [
        "PGPASSWORD={} psql -h db",
        "export GITHUB_TOKEN={}",
        "MYSQL_PWD={} mysqldump all",
        "DB_PASS='{}'",
        'AWS_SECRET_ACCESS_KEY="{}"',
        "set OPENAI_API_KEY={}",
        "$env:API_TOKEN = '{}'",
        "docker run -e POSTGRES_PASSWORD={} postgres",
        "ENV SECRET_KEY_BASE={}",
        "REDISCLI_AUTH={} redis-cli",
        "SSHPASS={} sshpass -e ssh h",
        "SLACK_SIGNING_SECRET={}",
        "npm_config__authToken={}",
    ],
    "field": [
        '{{"password": "{}"}}',
        '{{"apiKey":"{}","n":1}}',
        "{{'client_secret': '{}'}}",
        '{{\\"accessToken\\": \\"{}\\"}}',
        'auth: {{ token: "{}" }}',
        'password="{}"',
        "secretKey => '{}',",
        "passphrase := `{}`",
        "private_key: {}",
        '"//registry.example/:_authToken": "{}"',
        "dbPassword = {};",
        "webhook_secret: '{}'",
        "storageAccountKey={}",
    ],
    "flag": [
        "login --password {}",
        "tool --api-key={} run",
        'tool --token "{}"',
        "helm install --set auth.password={}",
        "gh auth login --with-token {}",
        "tool -token {}",
        "vault write x --secret-id-token {}",
    ],
    "list": [
        '["--password", "{}"]',
        "['tool', '--api-key', '{}']",
        'args: ["--token","{}"]',
        '[\\"--auth-token\\", \\"{}\\"]',
        '"--client-secret",\n  "{}"',
    ],
    "header": [
        "Authorization: Bearer {}",
        "authorization: token {}",
        "curl -H 'Authorization: Basic {}' https://x",
        "X-Api-Key: {}",
        "x-auth-token: {}",
        "Proxy-Authorization: Basic {}",
        "Ocp-Apim-Subscription-Key: {}",
        "'PRIVATE-TOKEN': '{}'",
        "-H 'X-Vault-Token: {}'",
        "x-functions-key: {}",
    ],
    "pair": [
        '["Authorization", "Bearer {}"]',
        "('X-Api-Key', '{}')",
        'headers.set("X-Auth-Token", "{}")',
        'req.setRequestHeader("Authorization", "{}")',
        '{{"name": "Authorization", "value": "Bearer {}"}}',
        '{{"key":"X-Api-Key","value":"{}"}}',
        "- name: DB_PASSWORD\n  value: {}",
        'name="PASSWORD" value="{}"',
        '{{\\"name\\": \\"API_TOKEN\\", \\"value\\": \\"{}\\"}}',
        '<add key="DbPassword" value="{}"/>',
    ],
    "cookie": [
        "Cookie: session={}",
        "Cookie: theme=dark1; sid={}",
        "Set-Cookie: sid={}; Path=/; HttpOnly",
        "curl -H 'Cookie: a={}' https://x",
        '"cookie": "token={}"',
        "document.cookie = 'auth={}'",
    ],
    "yaml": [
        "password: |\n  {}\nnext: 1",
        "stringData:\n  apiKey: >-\n    {}\n",
        "a:\n  client_secret: {}\n",
        "- token: {}",
        "secret: |-\n    first\n    {}\nend: x",
    ],
    "connection": [
        "postgres://me:{}@db:5432/x",
        "postgresql+psycopg://me:{}@db/x?sslmode=require",
        "redis://:{}@cache:6379/0",
        "mongodb+srv://u:{}@c.example/x?a=b@c",
        "amqp://u:p@{}@h/v",
        "https://u:{}@git.example/r.git",
        "Server=h;Database=d;User Id=sa;Password={};Encrypt=yes",
        "AccountName=a;AccountKey={};EndpointSuffix=x",
        "user:{}@tcp(db:3306)/x",
        "jdbc:postgresql://h/d?user=u&password={}",
        "machine h login me password {}",
        "https://b.example/o?sv=1&sig={}&se=2",
    ],
    "command": [
        "curl -u alice:{} https://x",
        'curl -s --user "alice:{}" https://x',
        "curl -sSualice:{} https://x",
        "curl https://x \\\n  -u alice:{}",
        '["curl", "-u", "alice:{}"]',
        "sshpass -p {} ssh me@h",
        "mysql -u root -p{} db",
        "redis-cli -h h -a {} ping",
        "docker login -u me -p {} reg.example",
        "http -a me:{} x.example",
        "ldapsearch -x -D cn=me -w {} -b dc=x",
        "unzip -P {} f.zip",
        "sqlcmd -S h -U me -P {}",
        "twine upload -u me -p {} dist/*",
        "smbclient //h/s -U me%{}",
        "openssl rsa -in k.pem -passin pass:{}",
        "vault login {}",
        "7z x -p{} a.7z",
        "xfreerdp /u:me /p:{} /v:h",
        "htpasswd -b f me {}",
        "net use x: \\\\h\\s {} /user:me",
        "sqlplus scott/{}@db",
        "echo {} | docker login -u me --password-stdin",
        "gh secret set DEPLOY --body {}",
        "fly secrets set DEPLOY={}",
        "cargo login {}",
        "ngrok config add-authtoken {}",
        "doctl auth init -t {}",
        "cloudflared service install {}",
    ],
    "setting": [
        "os.environ['API_TOKEN'] = '{}'",
        'config["db_password"]="{}"',
        "setenv('PASSWORD', '{}', 1)",
        'localStorage.setItem("accessToken", "{}")',
        "$store->set('api_key', '{}');",
        "aws configure set aws_secret_access_key {}",
        "heroku config:set API_KEY={}",
        "gh secret set DEPLOY_TOKEN '{}'",
        "'password' : u'{}'",
        "API_KEY: str = '{}'",
        "ENV PASSWORD {}",
        "setx TOKEN {}",
        "git config --global github.token {}",
        "requirepass {}",
        "db.example:5432:app:me:{}",
        "username me password 7 {}",
        'variable "token" {{ default = "{}" }}',
        "PresharedKey = {}",
        'psk="{}"',
    ],
    "sentence": [
        "the password is {}",
        "my API key is {}, thanks",
        "Access token: {}",
        "login: me, password - {}",
        "credentials: me / {}",
    ],
    "sql": ["CREATE USER me IDENTIFIED BY '{}'", "ALTER ROLE me WITH PASSWORD '{}'"],
    "user and password": [
        "requests.get(url, auth=('me', '{}'))",
        'HTTPBasicAuth("me", "{}")',
        'httpx.BasicAuth("me", "{}")',
        "request(app).auth('me', '{}')",
    ],
    "language": ["Das Passwort: {}", "contraseña: {}", "mot de passe : {}", "пароль: {}", "密码\uff1a{}"],
    "markup": [
        '<input type=password value="{}">',
        "<Password><![CDATA[{}]]></Password>",
        "<password>{}</password>",
        '<apiKey type="x">{}</apiKey>',
        "<ns:Secret>{}</ns:Secret>",
    ],
    "nested": [
        '{{"passwords": ["{}"]}}',
        '{{"apiKeys": ["a", "{}"], "n": 1}}',
        "{{'accessTokens': ['{}']}}",
        '{{"db": {{"password": {{"current": "{}"}}}}}}',
        'login({{"passwords":["{}"]}})',
        '{{\\"passphrases\\": [\\"{}\\"]}}',
        '{{"credentials": [{{"value": "{}"}}]}}',
        '"secrets": [\n  "{}"\n]',
    ],
    "windows": [
        '$env:TOKEN="{}"',
        "$cred = ConvertTo-SecureString '{}' -AsPlainText -Force",
        'ConvertTo-SecureString -String "{}" -AsPlainText -Force',
        "'{}' | ConvertTo-SecureString -AsPlainText",
        "[Environment]::SetEnvironmentVariable('API_KEY', '{}', 'User')",
        "Set-Item -Path env:DB_PASSWORD -Value '{}'",
        "net user bob {} /add",
        "net.exe user svc {}",
        "cmdkey /add:srv /user:me /pass:{}",
        "schtasks /create /tn job /ru me /rp {}",
        "rasdial office me {}",
        "netsh wlan set profileparameter name=home keyMaterial={}",
        "plink -ssh me@h -pw {}",
        "psexec \\\\\\\\h -u me -p {} cmd",
    ],
    "user, key, network": [
        "ssh-keygen -t ed25519 -N {} -f id",
        "ssh-keygen -p -P {} -f id",
        "echo bob:{} | chpasswd",
        "echo {} | passwd --stdin bob",
        "echo -n {} | cryptsetup luksOpen /dev/sda1 x",
        "wpa_passphrase home {}",
        "nmcli dev wifi connect home password {}",
        "rabbitmqctl add_user me {}",
        "mosquitto_passwd -b f me {}",
        "mosquitto_pub -h h -u me -P {} -t x -m y",
        "keytool -genkey -storepass {} -alias x",
        "kubectl create secret generic db --from-literal=pw={}",
        "aws ssm put-parameter --name x --value {} --type SecureString",
        "aws secretsmanager create-secret --name x --secret-string {}",
        "az keyvault secret set --vault-name v --name n --value {}",
        "security add-generic-password -a me -s x -w {}",
        "doppler secrets set DEPLOY={}",
    ],
    "sentence of another language": [
        "mein Passwort ist {}",
        "Das Kennwort lautet {}.",
        "setze das Passwort auf {} bitte",
        "le mot de passe est {}",
        "mon mdp c'est {}",
        "la contraseña es {}",
        "mi clave de acceso es {}, gracias",
        "la password è {}",
        "a senha é {}",
        "het wachtwoord is {}",
        "hasło to {}",
        "lösenordet är {}",
    ],
    "address": [
        "redis://:pass/{}@cache.example",
        "amqps://me:a/{}@mq.example/v",
        "postgres://me:{}/x@db/y",
        "https://discord.com/api/webhooks/123456789012345678/{}",
        "https://discordapp.com/api/v10/webhooks/987654321098765432/{}",
        "https://hooks.slack.com/services/T0AB12CD3/B0EF45GH6/{}",
        "https://example.webhook.office.com/webhookb2/{}",
        "https://maker.ifttt.com/trigger/door/with/key/{}",
        "https://hooks.zapier.com/hooks/catch/123456/{}",
    ],
    "other": [
        "DOCKER_AUTH_CONFIG={}",
        "the word is {}",
        "my key for the api: {}",
        "new Client('{}')",
        "pin code {}",
        "pass {} on to nobody",
    ],
}
"""Texts with a gap for a secret. Those of `other` are forms that are not looked for, and count."""

TOKENS: Final = {
    "docker": ("dckr" + "_pat_", ALNUM, (27,)),
    "new relic": ("NR" + "AK-", UPPER + DIGITS, (27,)),
    "vault, short": ("hv" + "s.", ALNUM, (24,)),
    "netlify": ("nf" + "p_", ALNUM, (36,)),
    "supabase": ("sb" + "p_", HEX, (40,)),
    "tailscale": ("tskey" + "-auth-", ALNUM, (24,)),
    "atlassian": ("ATATT" + "3x", ALNUM, (60,)),
    "1password": ("A3-", UPPER + DIGITS, (6, 11, 5, 5, 5)),
    "adobe": ("p8e-", LOWER + DIGITS, (32,)),
    "age": ("AGE-SECRET" + "-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", (58,)),
    "airtable": ("pat", ALNUM, (14,)),
    "anthropic": ("sk-ant" + "-api03-", WORD, (93,)),
    "artifactory": ("AKCp", ALNUM, (69,)),
    "aws": ("AK" + "IA", UPPER + "234567", (16,)),
    "aws session": ("AS" + "IA", UPPER + "234567", (16,)),
    "bedrock": ("ABSK", ALNUM, (120,)),
    "clickhouse": ("4b1d", ALNUM, (38,)),
    "clojars": ("CLOJARS_", LOWER + DIGITS, (60,)),
    "databricks": ("dapi", HEX, (32,)),
    "digitalocean": ("dop" + "_v1_", HEX, (64,)),
    "doppler": ("dp.pt.", LOWER + DIGITS, (43,)),
    "duffel": ("duffel" + "_live_", LOWER + DIGITS, (43,)),
    "dynatrace": ("dt0c01.", LOWER + DIGITS, (24,)),
    "easypost": ("EZAK", LOWER + DIGITS, (54,)),
    "flutterwave": ("FLWSECK_TEST-", "abcdefgh" + DIGITS, (12,)),
    "flyio": ("fo1_", ALNUM, (43,)),
    "frameio": ("fio-u-", LOWER + DIGITS, (64,)),
    "google": ("AI" + "za", ALNUM, (35,)),
    "google oauth": ("ya29.", ALNUM, (60,)),
    "github": ("gh" + "p_", ALNUM, (36,)),
    "github app": ("gh" + "s_", ALNUM, (36,)),
    "github fine": ("github" + "_pat_", ALNUM, (82,)),
    "gitlab": ("gl" + "pat-", ALNUM, (20,)),
    "gitlab deploy": ("gldt-", ALNUM, (20,)),
    "gitlab runner": ("glrt-", ALNUM, (20,)),
    "gitlab trigger": ("glptt-", HEX, (40,)),
    "grafana": ("glsa_", ALNUM, (32,)),
    "grafana cloud": ("glc_", ALNUM, (40,)),
    "groq": ("gsk_", ALNUM, (52,)),
    "heroku": ("HRKU-AA", ALNUM, (58,)),
    "huggingface": ("hf" + "_", LOWER, (34,)),
    "infracost": ("ico-", ALNUM, (32,)),
    "linear": ("lin_api_", LOWER + DIGITS, (40,)),
    "notion": ("ntn_" + "48159263704", ALNUM, (35,)),
    "npm": ("npm" + "_", LOWER + DIGITS, (36,)),
    "octopus": ("API-", UPPER + DIGITS, (26,)),
    "openai": ("sk-" + "proj-", ALNUM, (48,)),
    "openai old": ("sk" + "-", ALNUM, (48,)),
    "openshift": ("sha256~", ALNUM, (43,)),
    "perplexity": ("pplx-", ALNUM, (48,)),
    "planetscale": ("pscale_tkn_", ALNUM, (43,)),
    "postman": ("PMAK-", HEX, (24, 34)),
    "prefect": ("pnu_", ALNUM, (36,)),
    "pulumi": ("pul-", HEX, (40,)),
    "pypi": ("pypi" + "-AgEIcHlwaS5vcmc", ALNUM, (80,)),
    "readme": ("rdme_", LOWER + DIGITS, (70,)),
    "replicate": ("r8_", ALNUM, (37,)),
    "rubygems": ("rubygems_", HEX, (48,)),
    "scalingo": ("tk-us-", ALNUM, (48,)),
    "sendgrid": ("SG" + ".", ALNUM, (22,)),
    "sendinblue": ("xkeysib-", HEX, (64, 16)),
    "sentry": ("sntryu_", HEX, (64,)),
    "settlemint": ("sm_pat_", ALNUM, (16,)),
    "shippo": ("shippo" + "_live_", HEX, (40,)),
    "shopify": ("shp" + "at_", HEX, (32,)),
    "shopify secret": ("shpss_", HEX, (32,)),
    "slack bot": ("xox" + "b-", DIGITS, (12, 12)),
    "slack app": ("xapp" + "-1-", UPPER + DIGITS, (11, 20)),
    "square": ("sq0atp-", ALNUM, (22,)),
    "stripe": ("sk" + "_live_", ALNUM, (24,)),
    "stripe restricted": ("rk" + "_live_", ALNUM, (24,)),
    "telegram": ("7", DIGITS, (9,)),
    "twilio": ("SK", HEX, (32,)),
    "vault": ("hvs.", ALNUM, (95,)),
    "x.ai": ("xai-", ALNUM, (80,)),
}
"""Tokens: how each begins, of which characters it is, and how long its parts are."""

ENDS: Final = {
    "airtable": (".", HEX, 64),
    "anthropic": ("AA", ALNUM, 0),
    "dynatrace": (".", LOWER + DIGITS, 64),
    "grafana": ("_", HEX, 8),
    "sendgrid": (".", ALNUM, 43),
    "telegram": (":AA", ALNUM, 33),
}
"""What follows the parts of some."""

AROUND: Final = ("use {}, please", "`{}`", "(see {})", "url?x={}&y=1", '{{"seen":"{}"}}', "- {}\n- other")


SEED: Final = "legal winner thank year wave sausage worth useful legal winner thank yellow"
"""A phrase out of the standard's own tests: nobody's."""
PHRASES: Final = (
    "my wallet: {}",
    "{}",
    "write it down:\n{}\nand keep it",
    "seed phrase is {}",
)
CARDS: Final = (
    "4111 1111 1111 1111",
    "4012888888881881",
    "5555-5555-5555-4444",
    "5105105105105100",
    "3782 822463 10005",
    "378282246310005",
    "6011 1111 1111 1117",
    "3530111333300000",
    "30569309025904",
    "2223003122003222",
)
"""Numbers that payment services give to those who test: of no account."""


def true_cases() -> Iterator[Case]:
    """Yield texts that have a secret."""
    chance = random.Random(20)  # noqa: S311 - nothing hangs on it
    secrets = [
        _word(chance, ALNUM, 24),
        _word(chance, LOWER + DIGITS, 13),
        _word(chance, ALNUM + "._+", 18) + "Z9",
    ]
    for form, texts in FORMS.items():
        for text in texts:
            for secret in secrets:
                yield Case(form, text.format(secret), secret)
    for name, (begin, alphabet, parts) in TOKENS.items():
        secret = begin + "-".join(_word(chance, alphabet, size) for size in parts)
        more, last, size = ENDS.get(name, ("", ALNUM, 0))
        secret += more + (_word(chance, last, size) if size else "")
        yield Case("token", AROUND[len(name) % len(AROUND)].format(secret), secret)

    for text in PHRASES:
        yield Case("seed phrase", text.format(SEED), " ".join(SEED.split()[3:6]))
    for text in CARDS:
        number = "".join(character for character in text if character.isdigit())
        yield Case("card", f"pay with {text}, please", text if text != number else number)


def _word(chance: random.Random, alphabet: str, size: int) -> str:
    return "".join(chance.choice(alphabet) for _ in range(size - 1)) + next(
        c for c in alphabet[::-1] if c.isalnum()
    )


FALSE: Final = [
    line
    for line in """\
mein Passwort ist leider falsch
das Passwort ist zu kurz
das Passwort lautet anders als der Name
das Kennwort wurde gestern geändert
ein Passwort mit 12 Zeichen
Passwort vergessen?
le mot de passe est incorrect
le mot de passe est obligatoire, 12 caractères
mot de passe oublié ?
la contraseña es obligatoria
la contraseña es demasiado corta
la clave es leer despacio
la password è scaduta
a senha é curta
het wachtwoord is verlopen
net user
net user bob /delete
net user bob *
net use
ConvertTo-SecureString $plain -AsPlainText -Force
$secure = Read-Host -AsSecureString
Set-Item env:PATH C:\\\\bin
[Environment]::SetEnvironmentVariable('PATH', 'C:\\\\bin')
ssh-keygen -t ed25519 -f id
ssh-keygen -R host.example
echo done | passwd --help
nmcli dev wifi list
nmcli connection show
rabbitmqctl list_users
mosquitto_pub -h h -t x -m y
mosquitto_pub -h h -p 1883 -t x -m hello
kubectl create secret generic db --from-file=a.txt
aws ssm get-parameter --name x
az keyvault secret list --vault-name v
security find-generic-password -a me
copy a.txt b.txt /p:no
plink -ssh me@host
psexec \\\\\\\\h cmd
https://discord.com/channels/123456789012345678/987654321098765432
https://discord.com/api/webhooks
https://hooks.slack.com/docs
redis://cache.example:6379/0
postgres://db.example:5432/app?user=a@b
amqp://mq.example/v
mongodb://a.example:27017,b.example:27017/x
order 4111 1111 1111 1112 was shipped
4111111111111112
1234 5678 9012 3456
tracking 9400110200881234567890
2026112207315112
1700000000000
call +49 30 1234 5678 9012
account 0000000000000000
ISBN 9783161484100
17 18 19 20 21 22 23 24 25 26 27 28
abandon all hope ye who enter here
about above across act actor adapt add again age
the quick brown fox jumps over the lazy dog near the old river bank at dawn
legal winner thank year wave sausage worth
we build a simple machine that can move water from one place to another place
{"passwords": []}
{"passwords": {"min": 12, "max": 64}}
{"tokens": ["the", "cat", "sat"]}
{"keys": ["a", "b"]}
{"token": 12, "tokens": 99812}
{"password": true}
{"secrets": ["${A}", "<yours>"]}
{"password": {"type": "string", "format": "password"}}
hvs. is a prefix
NRAK is one, too
dckr_pat_ begins it
setError('password', 'Password is required')
addField('password', 'Password')
map.set('token', token)
headers.set('Accept', 'text/html')
columns['password'] = None
settings['password'] = read_password()
auth(user, password)
@auth('admin', 'editor')
unzip -l archive.zip
openssl version
vault login -method=oidc
git config set user.name Bob
git config set password_policy strict
Passwort: mindestens acht Zeichen
contraseña: obligatoria
sk-learn-pipelines and sk-image-filters
pip install sk-learn-contrib
npm_config_registry=https://registry.example
npm_lifecycle_event is test
hf_transfer_enabled was set
fetch(url, {credentials: 'same-origin'})
fetch(url, {credentials: "include"})
credentials: 'omit'
PWD=/srv/me
OLDPWD=/srv/me/src
docker run -p 8080:80 -u 1000:1000 image
mkdir -p build/out
ls -a /tmp
curl https://example.com/a -o b
curl -u https://x.example
ssh -p 2222 host
git log --author=me --since=yesterday
max_tokens: 4096
token_count = 12
totalTokens: 99812
tokenizer: cl100k_base
password_file: /run/secrets/db
passwordFile=/etc/pw
secretName: tls-cert
secret_id: 12
credentialsProvider: env
PASSWORD_MIN_LENGTH=12
passwordHint: the dog
forgot_password_url = "/reset"
tokenType: Bearer
token_url: https://id.example/token
auth_type: basic
auth: none
auth = true
auth: oauth2
password: string
password: str
"password": {"type": "string"}
secret: required
token: null
password = None
api_key: undefined
type: password
<input type="password" name="pw">
["password", "email", "name"]
("token", "user")
columns = ['password', 'created_at']
header names: "Authorization", "Accept"
Access-Control-Allow-Headers: Authorization, X-Api-Key
Vary: Cookie, Accept
cookie: yes please
cookies are accepted
we bake cookies = good
PASSWORD=${DB_PASSWORD}
password: ${{ secrets.DB }}
token = os.environ["TOKEN"]
apiKey: process.env.API_KEY
api_key=$API_KEY
password: {{ vault_password }}
Authorization: Bearer <token>
--token <your-token>
secret=***
password: xxxxxxxx
passwd: files systemd
shadow: files
a bearer of good news
the token of my esteem
a key insight about keys
the secret of a good soup
he gave me his word and his key
authors: Ann, Bob
author = "Ann"
authority: example
keyboard: us
monkey: banana
primaryKey: id
foreign_key=user_id
sort_key: created
SESSION_KEY=agent:main:main
sessionKey: agent:main:telegram:group:-100123456789
idempotencyKey: k-1
cache_key: v1-linux
public_key: abcdef
PUBLIC_KEY=ssh-ed25519
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 me@host
commit 3f2a9c1d8b7e6f5a4c3b2a1908f7e6d5c4b3a291
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
md5 d41d8cd98f00b204e9800998ecf8427e
id 550e8400-e29b-41d4-a716-446655440000
runId: 7f0e2a56-9a0e-5b1a-8a53-0d6f1c2b3a4d
2026-11-22T07:31:51.123456Z
12:30:45 and 11:22:33:44:55:66
123456789:short
version 1.2.3-beta.4+build.5678
/usr/lib/python3.11/site-packages/very_long_package_name/__init__.py
https://example.com/a/b/c/d?page=2&limit=50#section-with-a-long-name
https://example.com:8080/path@v2/file
git@github.com:owner/repository.git
user@example.com wrote
mailto:someone@example.com
npm install @scope/package@1.2.3
image: registry.example/team/app@sha256:0000
kubectl get secret my-secret -o yaml
aws secretsmanager list-secrets
gh auth status
docker login
mysql -u root -p
redis-cli ping
sshpass -e ssh host
psql -U postgres -h localhost
htop -u me
ps -u me -o pid
tar -xpf a.tar
grep -ia needle hay
curl -a
wget -U agent https://x
http://localhost:3000/login?next=/a
login failed: password incorrect
login as root password required
the password is wrong
enter your password: again
Password:
token:
--password
--token --verbose
--secret-name mysecret
--key-id 12
--auth-type basic
--token-ttl 30
a=b; c=d
x = {"key": "value", "keys": ["a", "b"]}
{"name": "Ann", "value": "5"}
{"name": "token_count", "value": "5"}
- name: REPLICAS\\n  value: 3
<name>Ann</name>
<key>CFBundleName</key>
<token_count>5</token_count>
description: |\\n  a long text\\n  of two lines
run: |\\n  make test
notes: >\\n  folded text
|---|---|
sig=1&b=2
signature: str
def sign(signature: bytes) -> str
class Token(NamedTuple):
token = tokens[0]
next_token()
self.token.value
tokens.append(token)
password.strip()
if password == expected:
return token
import secrets
from getpass import getpass
raise InvalidToken(token)
const {token, secret} = options
function auth(req, res) {}
router.use(auth)
auth/login.py
src/auth/token.ts
tests/test_password_reset.py
the authToken field is optional
use the --api-key flag
set the API_KEY variable
PASSWORD is not set
TOKEN: not found
api-key header missing
X-Api-Key is required
Authorization header is missing
401 Unauthorized
WWW-Authenticate: Bearer
bearer token expired
basic auth is off
digest authentication
risk-assessment-2024-final
task-force-members-list
pk-compare-tables
rk-methods-overview
desk-lamp-catalogue
disk-usage-report
AKIA is a prefix
sk- sk_ ghp_ are prefixes
SG.x
xoxb is Slack's
AIza begins a key
hf_hub_download(repo)
gsk_example
EZ does it
SKU 1234567890
SKELETON of a talk
API-first design
dapi server
pat. the dog
ops_team
ico-fonts
pul-monary
tk-us-east
s.split(",")
dp.pt is short
confluence page 12345
jira: ABC-123
JIRA_PROJECT=OPS
discord: general
stripe = "dashed"
square = x * x
twitter: @someone
facebook | page
linear algebra
notion of a thing
vault door
codecov: 93%
heroku logs
okta group
airtable base
asana task
algolia index
the token: a gift of hers
Password: must have twelve characters
the secret: nobody knows it
api key: ask Ann for one
her auth: by fingerprint
Passphrase: four words or more
the password is case-sensitive
the password is required, and 12 characters at least
your password was changed on 2026-11-21
the API key is rotated every 90 days
api key is base64 encoded
password - SHA256 hashed
access token: OAuth2.0
a library identified by 'name'
credentials: read / write
API_KEY: str = os.environ['API_KEY']
token: str = ''
login('me', password)
signIn('google', 'popup')
connect to a/b
ENV PATH /usr/local/bin
git config user.name token
npm config get registry
ngrok http 8080
cargo login --help
tests pass: 34
const token = await login()
echo done | sudo tee log
echo hello | grep -S x
7z a archive.7z dir
12:30:45:10:5
aa:bb:cc:dd:ee:ff
https://x.example/?key=user_profile_settings
<input type=text value="hello">
<input type="password" value="">
variable "region" { default = "eu-central-1" }
username bob
enable secret sharing
it costs $1$ or $5$ each
fly secrets list
net use x: \\\\h\\s
""".splitlines()
    if line
]
"""Texts without a secret; `\\\\n` is a line's end."""


def false_cases() -> Iterator[str]:
    """Yield texts that have no secret."""
    for line in FALSE:
        yield line.replace("\\n", "\n")
