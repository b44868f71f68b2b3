// Tests against a real server of examples/, named by REPERTORY_URL and REPERTORY_TOKEN.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

import { connect, RepertoryError } from "repertory-client";

const { REPERTORY_URL: url, REPERTORY_TOKEN: token } = process.env;
const repertory = connect(`${url}/`, { token });

/** The error of a request that must fail. */
async function refused(request) {
  const error = await request.then(() => assert.fail("it was answered"), (reason) => reason);
  assert.ok(error instanceof RepertoryError, error);
  return error;
}

/** Run a function while another server than Repertory answers its requests. */
async function meanwhile(answer, run) {
  const server = createServer(answer);
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  try {
    await run(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  }
}

test("a search returns hits and takes filters", async () => {
  const answer = await repertory.search("serch_notes");
  assert.equal(answer.results[0].toolId, "notes__search_notes");
  assert.ok(answer.results[0].confidence > 0.9);
  const options = { kinds: ["skill"], limit: 2, threshold: 0 };
  const skills = await repertory.search("notes", options);
  assert.deepEqual(skills.results.map((hit) => hit.kind), ["skill", "skill"]);
});

test("several searches are answered in order", async () => {
  const queries = [{ q: "replace a leaked key" }, { q: "add_note", limit: 1 }];
  const [first, second] = await repertory.searchMany(queries);
  assert.equal(first.results[0].toolId, "skills/rotating-api-keys");
  assert.deepEqual(second.results.map((hit) => hit.toolName), ["add_note"]);
});

test("an item is complete, and a result can be explained", async () => {
  const skill = await repertory.get("skills/rotating-api-keys");
  assert.match(skill.body, /^# Rotating API keys/m);
  const tool = await repertory.get("notes__add_note");
  assert.ok(tool.inputSchema.properties.text);
  const why = await repertory.explain("write down a note", "notes__list_notes");
  assert.equal(why.hit.toolId, "notes__list_notes");
});

test("a tool is called", async () => {
  const result = await repertory.call("notes__add_note", { text: "Buy oats" });
  assert.equal(result.isError, false);
  assert.match(JSON.stringify(result.content), /Buy oats/);
  assert.equal((await repertory.call("notes__list_notes")).isError, false);
});

test("an error says which side failed and why", async () => {
  const unknown = await refused(repertory.get("notes__ad_note"));
  assert.deepEqual([unknown.status, unknown.kind], [404, "UnknownItemError"]);
  assert.match(unknown.message, /did you mean notes__add_note/);
  const wrong = await refused(repertory.call("notes__add_note", { text: 1 }));
  assert.equal(wrong.side, "caller");
  const failed = await refused(repertory.call("notes__forget_note", { note_id: 4711 }));
  assert.deepEqual([failed.status, failed.side], [502, "tool"]);
  assert.ok(failed.content.length > 0);
  assert.equal((await refused(repertory.search(" "))).status, 422);
});

test("a wrong token is refused", async () => {
  const stranger = connect(url, { token: "wrong" });
  assert.equal((await refused(stranger.search("note"))).status, 401);
});

test("arguments or tokens that cannot be sent are the caller's error", async () => {
  const cycle = {};
  cycle.cycle = cycle;
  for (const wrong of [{ text: 5n }, cycle]) {
    const error = await refused(repertory.call("notes__add_note", wrong));
    assert.deepEqual([error.status, error.side], [0, "caller"]);
    assert.match(error.message, /cannot be written as JSON/);
  }
  const error = await refused(new Promise((done) => done(connect(url, { token: "ключ" }))));
  assert.match(error.message, /token is invalid/);
});

test("a lone surrogate is sent as U+FFFD", async () => {
  const half = "write down a note 🦉".slice(0, -1);
  assert.equal((await repertory.explain(half, "notes__add_note")).hit.toolId, "notes__add_note");
  for (const ask of [() => repertory.get(half), () => repertory.call(half)]) {
    assert.equal((await refused(ask())).status, 404);
  }
});

test("`api` reaches every operation", async () => {
  const { data, error } = await repertory.api.GET("/v1/items", {
    params: { query: { kind: ["tool"], server: ["notes"], limit: 2 } },
  });
  assert.equal(error, undefined);
  assert.equal(data.items.length, 2);
  assert.ok(data.total > 2);
});

test("an unreachable server and another kind of server are reported", async () => {
  await meanwhile((_, response) => response.end("<html>"), async (other) => {
    const error = await refused(connect(other).search("note"));
    assert.match(error.message, /not a Repertory server/);
  });
  await meanwhile((_, response) => response.writeHead(404).end("{}"), async (other) => {
    const error = await refused(connect(other).get("x"));
    assert.deepEqual([error.status, error.side], [404, "us"]);
  });
  const away = await refused(connect("http://127.0.0.1:9").search("note"));
  assert.deepEqual([away.status, away.side], [0, "us"]);
  assert.match(away.message, /cannot be reached/);
});

test("JSON of another server is not returned as an answer", async () => {
  for (const body of ['{"a": 1}', "null", "[]", '"x"', '{"answers": null}']) {
    await meanwhile((_, response) => response.end(body), async (other) => {
      const stranger = connect(other);
      const requests = [
        () => stranger.search("note"),
        () => stranger.searchMany([{ q: "note" }]),
        () => stranger.explain("note", "x"),
        () => stranger.get("x"),
        () => stranger.call("x"),
      ];
      for (const request of requests) {
        const error = await refused(request());
        assert.deepEqual([error.status, error.side], [200, "us"]);
        assert.match(error.message, /not a Repertory server/);
      }
    });
  }
});

test("a proxy without its server and an invalid URL are reported", async () => {
  for (const status of [502, 503, 504]) {
    await meanwhile((_, response) => response.writeHead(status).end("<html>"), async (other) => {
      const error = await refused(connect(other).search("note"));
      assert.equal(error.status, status);
      assert.match(error.message, /proxy/);
    });
  }
  const parts = ["http://me:secret@127.0.0.1", "http://127.0.0.1?a=1", "http://127.0.0.1#a", " http://127.0.0.1"];
  for (const wrong of ["", "127.0.0.1", "localhost:7700", "/repertory", "ftp://127.0.0.1", ...parts]) {
    const error = await refused(new Promise((done) => done(connect(wrong))));
    assert.match(error.message, /is no URL of a server/);
  }
});

test("an aborted request rejects with the caller's reason", async () => {
  await meanwhile(() => {}, async (hanging) => {
    const reason = new Error("no time");
    const ended = new AbortController();
    const request = connect(hanging).search("note", { signal: ended.signal });
    ended.abort(reason);
    await assert.rejects(request, reason);
  });
});
