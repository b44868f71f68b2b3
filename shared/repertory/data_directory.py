"""The names of the files and folders in the data directory, which only its owner can read."""

VECTORS = "vectors.sqlite"  # the vector cache
COLLECTIONS = "collections"  # of Qdrant Edge
ALIASES = "aliases"  # of Qdrant Edge, each a file with the name of its collection
KEYWORDS = "keywords"  # snapshots of keyword indexes
WORKSPACES = "workspaces"  # what each directory indexed
STATUS = "status"  # the last scan report of each directory
MODELS = "models"  # weights, calibrations and optimised graphs
FETCHED = "fetched"  # remote content
TRUSTED = "trusted.json"  # the digests of trusted configurations
SIGN_INS = "sign-ins"  # the tokens of MCP servers
KEYS = "keys"  # the keys of each directory's server
TEAM_KEYS = "keys.json"  # the keys of a team's server
AUDIT = "audit"  # the audit log
USAGE = "usage"  # recorded searches and uses
REVIEWS = "reviews"  # approvals
CONNECTED = "connected"  # agent hosts' configurations before they were connected
SERVERS = "servers"  # where running servers listen
