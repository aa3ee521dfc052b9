/** What the client under test does: buys a machine, and waits until it can be logged in to. */
export interface Provider {
  baseUrl: string;
  apiKey: string;
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  sleep: (ms: number) => Promise<unknown>;
  /** Aborts so much later, as `AbortSignal.timeout`. */
  timeout: (ms: number) => AbortSignal;
}

export interface Order {
  configuration_id: string;
  region: string;
  name: string;
  ssh_keys: string[];
}

export interface Instance {
  id: string;
  status: string;
}

/** An answer that says nothing of a resource: it is asked again. */
class NoAnswer extends Error {}

const POLL_MS = 15_000;
const DEADLINE_MS = 10_000;
const ATTEMPTS = 5;
/** How often in a row a machine is not found before it counts as gone. */
const MISSES = 3;

/** Sends a create until it is answered: with the same key a provider makes one instance, however often it is asked. */
export async function createInstance(
  provider: Provider,
  order: Order,
  idempotencyKey: string,
): Promise<Instance> {
  for (let attempt = 1; ; attempt++) {
    try {
      const { status, body } = await ask(provider, '/instances', {
        method: 'POST',
        headers: { 'idempotency-key': idempotencyKey },
        body: JSON.stringify(order),
      });
      if (status !== 201) throw new Error(`the provider refuses: ${status}`);
      return body;
    } catch (error) {
      if (attempt === ATTEMPTS || !(error instanceof NoAnswer)) throw error;
      await provider.sleep(1_000 * 2 ** attempt);
    }
  }
}

/** The instance, when it is no longer being made; undefined: it is gone. */
export async function waitUntilOnline(provider: Provider, id: string): Promise<Instance | undefined> {
  for (let misses = 0; misses < MISSES; await provider.sleep(POLL_MS)) {
    try {
      const { status, body } = await ask(provider, `/instances/${id}`);
      misses = status === 404 ? misses + 1 : 0;
      if (status === 200 && ['ONLINE', 'ERROR'].includes(body.status)) return body;
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
    }
  }
  return undefined;
}

/** @throws {NoAnswer} where nothing is known of what was asked for */
async function ask(
  { baseUrl, apiKey, fetch, sleep, timeout }: Provider,
  path: string,
  { headers, ...init }: RequestInit = {},
): Promise<{ status: number; body: Instance }> {
  const answer = await fetch(`${baseUrl}${path}`, {
    ...init,
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...headers },
    signal: timeout(DEADLINE_MS),
  }).catch((cause) => {
    throw new NoAnswer('the connection broke', { cause });
  });
  if (answer.status === 429) await sleep(1_000 * Number(answer.headers.get('retry-after') ?? 1));
  if (answer.status === 429 || answer.status >= 500) throw new NoAnswer(`it answers ${answer.status}`);
  const body: unknown = await answer.json().catch((cause) => {
    throw new NoAnswer('it cannot be read', { cause });
  });
  return { status: answer.status, body: body as Instance };
}
