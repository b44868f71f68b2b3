/**
 * A client of a Repertory server.
 *
 * `connect` returns a `Repertory` with typed methods. Its `api` reaches every operation of the
 * OpenAPI document, whose types are also exported.
 */
import createClient, { type Client } from "openapi-fetch";

import type { Answer, CallResult, Explanation, Item, paths, Refusal, Search } from "./schema.js";

export type * from "./schema.js";

/** A JSON object in a request or an answer. */
export type Json = { [key: string]: unknown };

/** How to reach a server. */
export interface Options {
  /** A key, or the token of your own server: `repertory keys token`. */
  token?: string;
  /** Sends the requests; the global `fetch` by default. */
  fetch?: (request: Request) => Promise<Response>;
}

/** Options of every request. */
export interface Call {
  /** Aborts the request, for example `AbortSignal.timeout(5_000)`. */
  signal?: AbortSignal;
}

/** Options of a search; the server's settings replace missing ones. */
export type SearchOptions = Omit<Search, "q"> & Call;

const NO_SERVER = "What answers there is not a Repertory server; check its address.";
const AWAY = "A proxy answers that the server is away; see that it runs, or try again later.";

/** The error of a failed request. */
export class RepertoryError extends Error {
  override readonly name = "RepertoryError";
  /** The HTTP status; 0 if the server did not answer. */
  readonly status: number;
  /** Who caused the failure: the `caller`, the called `tool`, its `server`, or Repertory (`us`). */
  readonly side: Refusal["side"];
  /** The kind of error, such as `UnknownItemError`; empty if unknown. */
  readonly kind: string;
  /** The content that a failed tool returned. */
  readonly content: Json[];
  /** The structured content of a failed tool, if any. */
  readonly structuredContent: unknown;

  constructor(message: string, problem: Partial<Refusal> = {}, cause?: unknown) {
    super(message, { cause });
    this.status = problem.status ?? 0;
    this.side = problem.side ?? "us";
    this.kind = problem.error ?? "";
    this.content = problem.content ?? [];
    this.structuredContent = problem.structuredContent;
  }
}

/** A client of one server. Methods throw a `RepertoryError`, or the reason of an aborted signal. */
export class Repertory {
  /** Every operation of the HTTP API as an openapi-fetch client, which returns errors. */
  readonly api: Client<paths>;

  constructor(api: Client<paths>) {
    this.api = api;
  }

  /** Find items for a task, keywords or a name; each hit has a confidence and a reason. */
  async search(query: string, options: SearchOptions = {}): Promise<Answer> {
    const { signal, ...search } = options;
    const [answer] = await this.searchMany([{ q: query, ...search }], signal ? { signal } : {});
    if (answer === undefined) throw new RepertoryError("The server gave no answer to the query.");
    return answer;
  }

  /** Run up to a hundred searches; the answers are in the same order. */
  async searchMany(queries: Search[], options: Call = {}): Promise<Answer[]> {
    const body = { queries };
    const sent = this.api.POST("/v1/search", { body, ...options });
    return (await answered(sent, ({ answers }) => Array.isArray(answers), options)).answers;
  }

  /** Explain why a search shows or does not show an item. */
  async explain(query: string, item: string, options: Call = {}): Promise<Explanation> {
    const params = { query: { q: wellFormed(query), item: wellFormed(item) } };
    const sent = this.api.GET("/v1/explain", { params, ...options });
    return answered(sent, (why) => "verdict" in why, options);
  }

  /** One complete item: with the text of a skill or document, or the schemas of a tool. */
  async get(id: string, options: Call = {}): Promise<Item> {
    const params = { path: { item_id: wellFormed(id) } };
    const sent = this.api.GET("/v1/items/{item_id}", { params, ...options });
    return answered(sent, (item) => "id" in item, options);
  }

  /** Call a tool with arguments, if the server allows calls. */
  async call(tool: string, args: Json = {}, options: Call = {}): Promise<CallResult> {
    const params = { path: { tool_id: wellFormed(tool) } };
    checkJson(args);
    const sent = this.api.POST("/v1/tools/{tool_id}", { params, body: args, ...options });
    return answered(sent, (result) => "content" in result, options);
  }
}

/**
 * Make a client of a server, without sending a request.
 *
 * @param url The URL of the server, such as `http://127.0.0.1:7700`, with a path behind a proxy. In a
 *   browser it may be relative to the page.
 * @throws {RepertoryError} The URL or the token is invalid.
 */
export function connect(url: string, options: Options = {}): Repertory {
  if (!isAddress(url)) {
    throw new RepertoryError(`"${url}" is no URL of a server, like http://127.0.0.1:7700.`);
  }
  if (!/^[ -~]*$/.test(options.token ?? "")) {
    throw new RepertoryError("The token is invalid; copy it exactly as it was printed.", { side: "caller" });
  }
  const headers = options.token ? { Authorization: `Bearer ${options.token}` } : {};
  const sender = options.fetch ? { fetch: options.fetch } : {};
  return new Repertory(createClient<paths>({ baseUrl: url.replace(/\/+$/, ""), headers, ...sender }));
}

function isAddress(url: string): boolean {
  try {
    const { protocol, username, password } = new URL(url, globalThis.location?.href);
    return /^https?:$/.test(protocol) && !username && !password && !/[\s?#]/.test(url);
  } catch {
    return false;
  }
}

/** The text with U+FFFD for each lone surrogate, as the server reads it; URLs cannot have any. */
function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, "\ufffd");
}

function checkJson(args: Json): void {
  try {
    JSON.stringify(args);
  } catch (cause) {
    const message = "The arguments cannot be written as JSON; see that they hold no cycle and no BigInt.";
    throw new RepertoryError(message, { side: "caller" }, cause);
  }
}

/** The data of an answer of Repertory; a problem or any other answer is thrown as an error. */
async function answered<T extends object>(
  sent: Promise<{ data?: T; error?: unknown; response: Response }>,
  isOurs: (data: T) => boolean,
  { signal }: Call,
): Promise<T> {
  const { data, error, response } = await sent.catch((cause: unknown) => {
    if (signal?.aborted) throw signal.reason;
    const isUnsent = cause instanceof TypeError; // the error of fetch without a connection
    const what = isUnsent ? "The server cannot be reached; see that it runs there." : NO_SERVER;
    throw new RepertoryError(what, {}, cause);
  });
  if (isProblem(error)) throw new RepertoryError(error.detail, error);
  if (response.ok && typeof data === "object" && data !== null && isOurs(data)) return data;
  const { status } = response;
  throw new RepertoryError([502, 503, 504].includes(status) ? AWAY : NO_SERVER, { status });
}

function isProblem(value: unknown): value is Refusal {
  return typeof value === "object" && value !== null && "detail" in value && "side" in value;
}
