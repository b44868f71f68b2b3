"""Every setting, declared once: its type, range, default, key and description."""

from functools import partial
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta


def _setting(
    key: str,
    doc: str,
    *,
    ge: float | None = None,
    le: float | None = None,
    pattern: str | None = None,
    form: str = "",
    personal: bool = False,
    secret: bool = False,
) -> Meta:
    """Declare a setting.

    Args:
        key: Its key in the configuration file; flag and variable are named after field and key.
        doc: Its description, for help texts and schemas.
        ge: The minimum, if it is a number.
        le: The maximum, if it is a number.
        pattern: The regular expression it must match, if it is a text.
        form: The pattern in words.
        personal: A file that came with a project cannot set it, because it decides where data goes.
        secret: Its value is never shown.
    """
    extra = {"key": key, "personal": personal, "secret": secret, "form": form}
    if pattern:
        return Meta(pattern=pattern, description=doc, extra=extra)
    return Meta(ge=ge, le=le, description=doc, extra=extra)


_personal = partial(_setting, personal=True)
_header = partial(
    _personal, pattern=r"^[A-Za-z0-9-]{1,64}\Z", form="a name of letters, digits and hyphens"
)


def _groups(key: str, action: str) -> Meta:
    return _personal(key, f"Groups whose members may {action}; separated by commas.")


# No "_" or ":", because these end the namespace in names of collections and keys.
NAMESPACE_PATTERN = "[a-z][a-z0-9-]{0,31}"
NAMESPACE = "repertory"  # the default

# The settings that a single query can override. The schemas of queries use these types.
MAX_LIMIT = 100  # results that a server returns
Limit = Annotated[int, _setting("search.limit", "The maximum number of results.", ge=1)]
Threshold = Annotated[
    float, _setting("search.threshold", "The minimum confidence of a result, 0 to 1.", ge=0, le=1)
]
Alpha = Annotated[
    float, _setting("search.alpha", "The weight of meaning against words, 0 to 1.", ge=0, le=1)
]
NameWeight = Annotated[
    float,
    _setting(
        "search.name_weight", "How much a matching name adds to the score, 0 to 1.", ge=0, le=1
    ),
]
SectionWeight = Annotated[
    float,
    _setting(
        "search.section_weight", "How much a section counts for its item, 0 to 1.", ge=0, le=1
    ),
]


class Values(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The values of all settings: the one place where a setting is declared."""

    data_dir: Annotated[
        str, _personal("data_dir", "The data directory: index, models and keys.")
    ] = ""
    namespace: Annotated[
        str,
        _personal(
            "namespace",
            "The prefix of all names in Qdrant and Redis, so that several teams can share them.",
            pattern=rf"^{NAMESPACE_PATTERN}\Z",
            form="1 to 32 lowercase letters, digits and hyphens, the first a letter",
        ),
    ] = NAMESPACE
    model: Annotated[
        str | None, _setting("search.model", "The embedding model: a name or a folder.")
    ] = None
    device: Annotated[
        Literal["auto", "cpu", "gpu"], _setting("search.device", "Where the model runs.")
    ] = "auto"
    alpha: Alpha = 0.7
    name_weight: NameWeight = 0.8
    section_weight: SectionWeight = 0.95
    limit: Limit = 3
    threshold: Threshold = 0.35
    no_cache: Annotated[bool, _setting("search.no_cache", "Do not read or write caches.")] = False
    mcp_timeout: Annotated[
        float, _setting("mcp.timeout", "Seconds to wait for the answer of an MCP server.", ge=0.001)
    ] = 30.0
    tools_max_age: Annotated[
        float,
        _setting(
            "mcp.tools_max_age", "Hours after which a search says how old its tools are.", ge=0
        ),
    ] = 24.0
    allow_calls: Annotated[
        bool, _personal("mcp.allow_calls", "Let callers run tools through this server.")
    ] = False
    call_timeout: Annotated[
        float,
        _setting("mcp.call_timeout", "Seconds to wait for the result of a tool call.", ge=0.001),
    ] = 60.0
    sandbox: Annotated[
        str | None,
        _personal(
            "sandbox",
            "The folder that Vector.VectorUpdate may read  [default: the directory itself]",
        ),
    ] = None
    qdrant_url: Annotated[
        str | None,
        _personal(
            "qdrant.url",
            "A Qdrant server to use instead of the embedded engine, or the addresses of several "
            "nodes of one cluster, separated by commas.",
        ),
    ] = None
    qdrant_api_key: Annotated[
        str | None, _personal("qdrant.api_key", "The key for Qdrant.", secret=True)
    ] = None
    qdrant_replication_factor: Annotated[
        int,
        _personal(
            "qdrant.replication_factor",
            "Copies of each new shard in a Qdrant cluster; with 0, the cluster decides.",
            ge=0,
        ),
    ] = 0
    qdrant_shard_number: Annotated[
        int,
        _personal(
            "qdrant.shard_number",
            "Shards of a new collection in a Qdrant cluster; with 0, the cluster decides.",
            ge=0,
        ),
    ] = 0
    qdrant_write_consistency: Annotated[
        int,
        _personal(
            "qdrant.write_consistency",
            "Copies that must confirm a write to a Qdrant cluster; with 0, the cluster decides.",
            ge=0,
        ),
    ] = 0
    redis_url: Annotated[
        str | None,
        _personal(
            "redis.url",
            "The Redis of a team's server, where jobs wait for workers.",
            secret=True,  # it may hold a password
        ),
    ] = None
    server_url: Annotated[
        str | None,
        _personal("server.url", "A Repertory server to ask instead of a local index."),
    ] = None
    server_api_key: Annotated[
        str | None, _personal("server.api_key", "The key for that server.", secret=True)
    ] = None
    registry: Annotated[
        str, _personal("registry.url", "The MCP registry in which `repertory add` finds servers.")
    ] = "https://registry.modelcontextprotocol.io"
    host: Annotated[str, _personal("server.host", "The address to serve on.")] = "127.0.0.1"
    port: Annotated[int, _personal("server.port", "The port to serve on.", ge=0, le=65_535)] = 7700
    keys: Annotated[
        str | None,
        _personal("server.keys", "The file of the keys that the server accepts."),
    ] = None
    requests_per_minute: Annotated[
        int,
        _personal(
            "server.requests_per_minute",
            "The maximum number of requests per minute from one key or address.",
            ge=1,
        ),
    ] = 6_000
    public_url: Annotated[
        str,
        _personal(
            "server.public_url",
            "The URL at which browsers and hosts reach the server  [default: its host and port]",
        ),
    ] = ""
    read_groups: Annotated[
        str, _groups("access.read_groups", "search; * is everyone who signs in")
    ] = ""
    call_groups: Annotated[str, _groups("access.call_groups", "call tools")] = ""
    admin_groups: Annotated[str, _groups("access.admin_groups", "do everything")] = ""
    oidc_issuer: Annotated[
        str, _personal("oidc.issuer", "The URL of the OpenID provider at which people sign in.")
    ] = ""
    oidc_client_id: Annotated[
        str, _personal("oidc.client_id", "The client id of this server at the provider.")
    ] = ""
    oidc_client_secret: Annotated[
        str | None,
        _personal(
            "oidc.client_secret", "The client secret of this server at the provider.", secret=True
        ),
    ] = None
    oidc_client_secret_file: Annotated[
        str,
        _personal(
            "oidc.client_secret_file",
            "A file with the client secret, instead of oidc.client_secret.",
        ),
    ] = ""
    oidc_scopes: Annotated[
        str, _personal("oidc.scopes", "The scopes to request; some providers also need `groups`.")
    ] = "openid profile email"
    oidc_name_claim: Annotated[
        str,
        _personal(
            "oidc.name_claim",
            "The claim with a person's name; if a token lacks it, `sub` is used.",
        ),
    ] = "preferred_username"
    oidc_groups_claim: Annotated[
        str, _personal("oidc.groups_claim", "The claim with a person's groups.")
    ] = "groups"
    proxy_addresses: Annotated[
        str,
        _personal(
            "proxy.addresses",
            "Trusted proxies, which name the person of each request: addresses or networks, "
            "separated by commas.",
        ),
    ] = ""
    proxy_user_header: Annotated[
        str, _header("proxy.user_header", "The header in which a proxy names the person.")
    ] = "X-Forwarded-User"
    proxy_groups_header: Annotated[
        str,
        _header("proxy.groups_header", "The header with the person's groups, separated by commas."),
    ] = "X-Forwarded-Groups"
    audit_off: Annotated[
        bool, _personal("audit.off", "Do not record who did what in the audit log.")
    ] = False
    audit_folder: Annotated[
        str | None,
        _personal("audit.folder", "The folder of the audit log  [default: in the data directory]"),
    ] = None
    audit_texts: Annotated[
        bool,
        _personal("audit.texts", "Record the texts of queries and the arguments of calls, too."),
    ] = False
    audit_file_size: Annotated[
        int,
        _personal(
            "audit.file_size",
            "The size of each file of the audit log in megabytes.",
            ge=1,
            le=1_000,
        ),
    ] = 10
    audit_files: Annotated[
        int, _personal("audit.files", "The number of files of the audit log.", ge=1, le=1_000)
    ] = 10
    insights_record: Annotated[
        Literal["off", "hashed", "plain"],
        _personal(
            "insights.record",
            "What is recorded of searches for `repertory insights`: nothing, digests of the "
            "queries, or the queries themselves.",
        ),
    ] = "hashed"
    insights_max_age: Annotated[
        float,
        _personal("insights.max_age", "Days after which recorded usage is deleted.", ge=0),
    ] = 90.0
    insights_max_events: Annotated[
        int,
        _personal(
            "insights.max_events",
            "The maximum number of recorded searches and uses.",
            ge=1,
            le=1_000_000,
        ),
    ] = 50_000
    insights_webhook: Annotated[
        str | None,
        _personal(
            "insights.webhook",
            "The https URL of a webhook, such as Slack's, to which a server sends a daily digest.",
            secret=True,  # anyone who knows it can post there
        ),
    ] = None
    telemetry: Annotated[
        bool,
        _personal(
            "telemetry.on",
            "Send traces and metrics to the collector that the OTEL_ variables name.",
        ),
    ] = False
    debounce: Annotated[
        float,
        _setting("watch.debounce", "Seconds without changes before a file is read.", ge=0, le=60),
    ] = 0.3
    poll: Annotated[
        float,
        _setting(
            "watch.poll", "Seconds between scans where the system reports no changes.", ge=0.1
        ),
    ] = 2.0
    reconcile: Annotated[
        float,
        _setting(
            "watch.reconcile",
            "Seconds between full scans; a source that takes long to scan is scanned less often.",
            ge=0.1,
        ),
    ] = 60.0
    keep_unused: Annotated[
        float,
        _setting(
            "watch.keep_unused",
            "Days for which a team keeps the index of an unused configuration or model.",
            ge=0,
        ),
    ] = 7.0


_DEFAULTS = Values()


class Weights(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The weights of a search, each from 0 to 1.

    Attributes:
        alpha: The weight of the meaning; the words have the rest.
        name_weight: How much a name that resembles the query adds to the score. A name that was
            typed always counts.
        section_weight: The factor by which the cosine of a section counts for its item.
    """

    alpha: Alpha = _DEFAULTS.alpha
    name_weight: NameWeight = _DEFAULTS.name_weight
    section_weight: SectionWeight = _DEFAULTS.section_weight


def variables_of(key: str) -> tuple[str, str]:
    """The environment variables of a key: that of Toolscript, and ours, which takes precedence."""
    name = key.replace(".", "_").upper()
    return f"TOOLSCRIPT_{name}", f"REPERTORY_{name}"


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting, as ``Values`` declares it; see ``_setting``."""

    field: str
    key: str
    doc: str
    personal: bool
    secret: bool
    form: str
    type: Any  # without its range
    default: Any
    meta: Meta

    @property
    def flag(self) -> str:
        """The command line's flag."""
        return "--" + self.field.replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment variable."""
        return variables_of(self.key)[1]

    @property
    def alias(self) -> str:
        """The environment variable of Toolscript, Repertory's predecessor; it still works."""
        return variables_of(self.key)[0]

    @property
    def expected(self) -> str:
        """The valid values in words: ``a number from 0 to 1``."""
        if self.form:
            return self.form
        if get_origin(self.type) is Literal:
            *others, last = get_args(self.type)
            return f"{', '.join(others)} or {last}"
        names = {bool: "true or false", int: "a whole number", float: "a number"}
        name, ge, le = names.get(self.type, "a text"), self.meta.ge, self.meta.le
        if ge is None:
            return name
        return f"{name} from {ge:g} to {le:g}" if le is not None else f"{name} of at least {ge:g}"

    def read(self, value: object, *, strict: bool = True) -> Any:  # noqa: ANN401 - of its type
        """Check a value and convert it.

        Args:
            value: The value as given.
            strict: Whether to refuse numbers given as text; the environment gives them as text.

        Raises:
            ValueError: It has another type or is out of range.
        """
        return msgspec.convert(value, Annotated[self.type, self.meta], strict=strict)


def _declared() -> dict[str, Setting]:
    types = get_type_hints(Values)
    found = {}
    for field, declared in get_type_hints(Values, include_extras=True).items():
        (meta,) = declared.__metadata__
        found[field] = Setting(
            field=field,
            doc=meta.description,
            type=types[field],
            default=getattr(_DEFAULTS, field),
            meta=meta,
            **meta.extra,
        )
    return found


SETTINGS = _declared()  # by field

# The settings that are paths. Relative paths in a file start from the file's folder.
PATHS = frozenset({"data_dir", "sandbox", "keys", "audit_folder", "oidc_client_secret_file"})

RENAMED = {"watch.quiet": "watch.debounce"}  # keys of earlier releases, with the present keys
