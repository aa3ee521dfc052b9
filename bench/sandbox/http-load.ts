import { sendLoad } from '../support/load.ts';

const WARM_UP = 4_000;
const COUNT = 20_000;
const CONNECTIONS = 16;
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK bench';

export interface HttpLoad {
  requestsPerSecond: number;
  p99Ms: number;
}

/** Polls one instance of a served sandbox over keep-alive connections, each of which waits for its reply. */
export async function measureHttpLoad(baseUrl: string, apiKey: string): Promise<HttpLoad> {
  const { host, port, pathname } = new URL(`${baseUrl}/instances/${await makeInstance(baseUrl, apiKey)}`);
  const request = [
    `GET ${pathname} HTTP/1.1`,
    `Host: ${host}`,
    `Authorization: Bearer ${apiKey}`,
    'User-Agent: bench',
  ];
  const requests = [Buffer.from(`${request.join('\r\n')}\r\n\r\n`)];
  const load = { port: Number(port), requests, connections: CONNECTIONS, expectedStatus: 200 };
  await sendLoad({ ...load, count: WARM_UP });
  const tookMs: number[] = [];
  const begunAt = performance.now();
  await sendLoad({ ...load, count: COUNT, onReply: (ms) => tookMs.push(ms) });
  const seconds = (performance.now() - begunAt) / 1_000;
  tookMs.sort((a, b) => a - b);
  return { requestsPerSecond: COUNT / seconds, p99Ms: tookMs[Math.floor(COUNT * 0.99)] ?? Number.NaN };
}

async function makeInstance(baseUrl: string, apiKey: string): Promise<string> {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const offers = await (await fetch(`${baseUrl}/availability`, { headers })).json();
  const { configurations } = offers as { configurations: { id: string; regions: string[] }[] };
  const [offer] = configurations;
  const body = JSON.stringify({
    configuration_id: offer?.id,
    region: offer?.regions[0],
    ssh_keys: [KEY],
  });
  const made = await fetch(`${baseUrl}/instances`, { method: 'POST', headers, body });
  if (made.status !== 201) throw new Error(`a create is answered ${made.status}: ${await made.text()}`);
  return ((await made.json()) as { id: string }).id;
}
