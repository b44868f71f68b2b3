"""The paths at which a browser signs in, which are open to everyone."""

LOGIN = "/login"
LOGIN_OPENID = "/login/openid"
CALLBACK = "/login/callback"  # the provider redirects browsers here
SIGNING_IN = frozenset({LOGIN, LOGIN_OPENID, CALLBACK})
