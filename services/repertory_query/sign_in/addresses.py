"""The addresses that a browser signs in at, which are open to everyone."""

LOGIN = "/login"
LOGIN_OPENID = "/login/openid"
CALLBACK = "/login/callback"  # where the provider sends browsers back to
SIGNING_IN = frozenset({LOGIN, LOGIN_OPENID, CALLBACK})
