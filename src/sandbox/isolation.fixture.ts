import type { SandboxAccount } from './parts.ts';
import type { Sandbox } from './sandbox.ts';

export const SSH_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK test@example.com';
const DEADLINE_S = 900;

// biome-ignore lint/suspicious/noExplicitAny: each endpoint has an answer of its own
export type Reply = { status: number; body: any };

async function send(
  { fetch }: Pick<Sandbox, 'fetch'>,
  { baseUrl, key }: { baseUrl: string; key: string | undefined },
  [method, path]: [string, string],
  body?: unknown,
): Promise<Reply> {
  const response = await fetch(`${baseUrl}${path}`, {
    method,
    headers: {
      'content-type': 'application/json',
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
}

async function until(
  sandbox: Sandbox,
  read: () => Promise<string>,
  [wanted, withinS = DEADLINE_S]: [string, number?],
): Promise<void> {
  for (let second = 0; ; second += 5) {
    if ((await read()) === wanted) return;
    if (second >= withinS) break;
    await sandbox.clock.advance(5_000);
  }
  throw new Error(`it reads ${await read()}, not ${wanted}`);
}

/** A client of provider B that logs in for a token, and sends its other requests with it. */
export async function tokenClient(sandbox: Sandbox, account: SandboxAccount) {
  const { baseUrl = '', apiKey = '' } = account.providers['provider-b'] ?? {};
  const login = () =>
    send(sandbox, { baseUrl, key: undefined }, ['POST', '/auth/token'], { api_key: apiKey });
  const key: string = (await login()).body.access_token;
  const ask = (method: string, path: string, body?: unknown) =>
    send(sandbox, { baseUrl, key }, [method, path], body);
  const statusOf = async (id: string): Promise<string> =>
    (await ask('GET', `/instances/${id}`)).body.status ?? 'gone';
  return {
    login,
    ask,
    statusOf,
    until: (id: string, ...wanted: [string, number?]) => until(sandbox, () => statusOf(id), wanted),
    order: () =>
      ask('POST', '/instances', {
        configuration_id: 'b-rtx-4090-1x-spot',
        region: 'us-ashburn',
        image: 'ubuntu-24.04-cuda-13.0',
        ssh_keys: [SSH_KEY],
        name: 'one',
      }),
  };
}

/** A user of the marketplace, who deploys at provider B. */
export function marketClient(sandbox: Sandbox, { marketplace }: SandboxAccount) {
  const { baseUrl = '', apiKey = '' } = marketplace ?? {};
  const ask = (method: string, path: string, body?: unknown) =>
    send(sandbox, { baseUrl, key: apiKey }, [method, path], body);
  const statusOf = async (id: string): Promise<string> =>
    (await ask('GET', `/deployments/${id}`)).body.status;
  return {
    ask,
    statusOf,
    until: (id: string, ...wanted: [string, number?]) => until(sandbox, () => statusOf(id), wanted),
    deploy: () =>
      ask('POST', '/deployments', {
        provider: 'provider-b',
        offerId: 'b-rtx-4090-1x-spot',
        gpuCount: 1,
        region: 'us-ashburn',
        operatingSystem: 'ubuntu-24.04-cuda-13.0',
        instanceType: 'SPOT',
        ssh_public_key: SSH_KEY,
      }),
  };
}
