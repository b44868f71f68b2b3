"""The line that states the cause is found in the output of a failed MCP server."""

import pytest

from repertory.sources.mcp.traffic import Traffic

NODE = """
if (!process.env.ACME_KEY) throw new Error("ACME_KEY is not set");
                           ^

Error: ACME_KEY is not set
    at file:///srv/index.mjs:1:34
    at ModuleJob.run (node:internal/modules/esm/module_job:325:25)

Node.js v20.20.2
"""
NODE_MODULE = """
Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/srv/a.mjs'
    at moduleResolve (node:internal/modules/esm/resolve:952:10) {
  code: 'ERR_MODULE_NOT_FOUND',
  url: 'file:///srv/a.mjs'
}

Node.js v20.20.2
"""
NPM = """
npm error code E404
npm error 404 Not Found - GET https://npm.example.org/no-such-server
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git url.
npm error A complete log of this run can be found in: /home/a/.npm/_logs/debug-0.log
"""
UV = """
error: Failed to fetch: https://pypi.example.org/simple/no-such-server/
  cause: client error (Connect)
  cause: invalid peer certificate: UnknownIssuer

hint: Consider enabling use of system TLS certificates
"""
PYTHON_GROUP = """
  + Exception Group Traceback (most recent call last):
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    | ValueError: Set ACME_KEY
    +------------------------------------
"""
PYTHON_CHAIN = """
KeyError: 'ACME_KEY'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
acme.ConfigError: Set ACME_KEY
"""


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", ""),
        ("starting\nfatal: no such key\n\n", "fatal: no such key"),
        ("Error: no A, so B is taken\nThe port is in use", "The port is in use"),
        ("hint: set A", "hint: set A"),
        (NODE, "Error: ACME_KEY is not set"),
        (NODE_MODULE, "Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/srv/a.mjs'"),
        (NPM, "npm error 404 Not Found - GET https://npm.example.org/no-such-server"),
        (UV, "cause: invalid peer certificate: UnknownIssuer"),
        (PYTHON_GROUP, "ValueError: Set ACME_KEY"),
        (PYTHON_CHAIN, "acme.ConfigError: Set ACME_KEY"),
    ],
)
def test_the_last_line_that_states_an_error_is_shown(written: str, said: str) -> None:
    """Lines that Node.js, npm, uv or Python write after the error are skipped."""
    traffic = Traffic()
    traffic.add_stderr(written.encode())
    assert traffic.last_stderr == said
