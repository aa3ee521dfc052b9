type Json = Record<string, unknown>;

/** Returns the response with another text body. A response without a body, such as a 204, stays unchanged. */
export function withText(response: Response, text: string, headers: Record<string, string> = {}): Response {
  if (response.body === null) return response;
  const all = new Headers(response.headers);
  all.delete('content-length');
  for (const [name, value] of Object.entries(headers)) all.set(name, value);
  return new Response(text, { status: response.status, headers: all });
}

/** Changes the JSON of a successful answer. An answer without a JSON object stays unchanged. */
async function rewrite(response: Response, change: (json: Json) => Json): Promise<Response> {
  const json = response.ok ? await jsonOf(response) : undefined;
  return json === undefined ? response : withText(response, JSON.stringify(change(json)));
}

/** Changes each resource in an answer, single or listed. */
export function rewriteEach(
  response: Response,
  resource: string | undefined,
  change: (shown: Json) => Json,
): Promise<Response> {
  return rewrite(response, (json) => changeEach(json, resource, change));
}

/** As `rewriteEach`, in the JSON of an answer. */
export function changeEach(json: Json, resource: string | undefined, change: (shown: Json) => Json): Json {
  const changed = (shown: Json): Json =>
    resource === undefined || shown['id'] === resource ? change(shown) : shown;
  const list = listIn(json);
  return list === undefined ? changed(json) : { ...json, [list.name]: list.items.map(changed) };
}

export function rewriteList(response: Response, change: (items: Json[]) => Json[]): Promise<Response> {
  return rewrite(response, (json) => {
    const list = listIn(json);
    return list === undefined ? json : { ...json, [list.name]: change(list.items) };
  });
}

/** A list is an object whose only field is an array of objects. */
function listIn(json: Json): { name: string; items: Json[] } | undefined {
  const [field, ...others] = Object.entries(json);
  if (field === undefined || others.length > 0 || !Array.isArray(field[1])) return undefined;
  return { name: field[0], items: field[1] as Json[] };
}

export function isObject(json: unknown): json is Json {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

async function jsonOf(response: Response): Promise<Json | undefined> {
  const text = await response.clone().text();
  try {
    const json: unknown = JSON.parse(text);
    return isObject(json) ? json : undefined;
  } catch {
    return undefined;
  }
}

export async function bytesOf(response: Response | Request): Promise<Uint8Array> {
  return new Uint8Array(await response.arrayBuffer());
}
