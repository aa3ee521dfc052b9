/** What the client under test does: buys a machine, and waits until it can be logged in to. */
export interface Provider {
  baseUrl: string;
  apiKey: string;
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  sleep: (ms: number) => Promise<unknown>;
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

const POLL_MS = 15_000;

/** Sends a create until it is answered: with the same key a provider makes one instance, however often it is asked. */
export async function createInstance(
  provider: Provider,
  order: Order,
  idempotencyKey: string,
): Promise<Instance> {
  const headers = { ...headersOf(provider), 'idempotency-key': idempotencyKey };
  for (let attempt = 1; ; attempt++) {
    try {
      const answer = await provider.fetch(`${provider.baseUrl}/instances`, {
        method: 'POST',
        headers,
        body: JSON.stringify(order),
      });
      if (!answer.ok) throw new Error(`the provider refuses: ${answer.status}`);
      return (await answer.json()) as Instance;
    } catch (error) {
      if (attempt === 3 || !(error instanceof TypeError)) throw error;
    }
  }
}

export async function waitUntilOnline(provider: Provider, id: string): Promise<Instance> {
  for (;;) {
    const answer = await provider.fetch(`${provider.baseUrl}/instances/${id}`, {
      headers: headersOf(provider),
    });
    const instance = (await answer.json()) as Instance;
    if (instance.status !== 'PROVISIONING') return instance;
    await provider.sleep(POLL_MS);
  }
}

function headersOf({ apiKey }: Provider): Record<string, string> {
  return { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
}
