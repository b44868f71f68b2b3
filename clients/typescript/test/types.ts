// Compiled but never run: uses that the types allow, and uses that they reject.
import { connect, RepertoryError, type Answer, type Hit, type Item, type Kind } from "repertory-client";

const repertory = connect("http://127.0.0.1:7700");

export async function right(): Promise<[string, number, Kind, unknown]> {
  const answer: Answer = await repertory.search("x", { kinds: ["tool"], limit: null });
  const hit: Hit | undefined = answer.results[0];
  const item: Item = await repertory.get("x", { signal: AbortSignal.timeout(1_000) });
  const result = await repertory.call("x", { any: [1] });
  const { data } = await repertory.api.GET("/v1/stats");
  const error = new RepertoryError("x");
  const side: "caller" | "server" | "tool" | "us" = error.side;
  return [hit?.matchedIn ?? side, data?.items ?? 0, item.kind, result.structuredContent];
}

// @ts-expect-error: there is no such kind
repertory.search("x", { kinds: ["tol"] });
// @ts-expect-error: there is no such option
repertory.search("x", { lmit: 1 });
// @ts-expect-error: a query is a text
repertory.searchMany([{ q: 1 }]);
// @ts-expect-error: there is no such operation
repertory.api.GET("/v1/nothing");
// @ts-expect-error: the item must be named
repertory.api.GET("/v1/items/{item_id}");
