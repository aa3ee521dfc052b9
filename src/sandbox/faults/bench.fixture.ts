import { createSandbox } from '../../compose/sandbox/sandbox.ts';
import type { SandboxOptions } from '../options.ts';
import type { Sandbox } from '../sandbox.ts';
import type { Arming } from './arming.ts';
import { type FaultName, faultCatalog } from './catalog/catalog.ts';

export const SSH_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK test@example.com';
/** The test's orders. D can do everything except resize a volume, E can resize one, B sells spot instances. */
const orders = {
  b: { configuration_id: 'b-rtx-4090-1x-spot', region: 'us-ashburn', image: 'ubuntu-24.04-cuda-13.0' },
  d: { configuration_id: 'd-cpu-4x16', region: 'us-phoenix', image: 'ubuntu-24.04' },
  e: { configuration_id: 'e-cpu-8x32', region: 'eu-frankfurt', image: 'ubuntu-24.04' },
};

// biome-ignore lint/suspicious/noExplicitAny: each endpoint has an answer of its own
export type Reply = { status: number; body: any; text: string; headers: Headers };

/** Starts providers whose machines take whole seconds. */
export async function startBench(options: SandboxOptions = {}): Promise<Sandbox> {
  return createSandbox({
    providers: ['d', 'e', 'b'],
    rate_limits: false,
    timing: {
      boot: [4_000, 4_000],
      stop: [2_000, 2_000],
      start: [2_000, 2_000],
      restart: [2_000, 2_000],
      destroy: [2_000, 2_000],
      volume: [1_000, 1_000],
    },
    ...options,
  });
}

/** Actions of a test as one account of a provider. */
export async function benchOf(sandbox: Sandbox, letter: keyof typeof orders = 'd') {
  const provider = `provider-${letter}`;
  const { providers, name: account } = await sandbox.account();
  const { baseUrl, apiKey } = providers[provider] as { baseUrl: string; apiKey: string };
  const send = (method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> =>
    sandbox.fetch(`${baseUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal,
    });
  async function ask(method: string, path: string, body?: unknown): Promise<Reply> {
    const response = await send(method, path, body);
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, body: parsed(text) };
  }
  const read = (id: string): Promise<Reply> => ask('GET', `/instances/${id}`);
  const order = (name: string): Promise<Reply> =>
    ask('POST', '/instances', {
      ...orders[letter],
      ssh_keys: [SSH_KEY],
      name,
    });
  async function until(id: string, wanted: string, withinS = 120): Promise<Reply> {
    for (let second = 0; second <= withinS; second++) {
      const reply = await read(id);
      if ((reply.status === 404 ? 'GONE' : reply.body.status) === wanted) return reply;
      await sandbox.clock.advance(1_000);
    }
    throw new Error(`${id} reads ${(await read(id)).text}, not ${wanted}`);
  }
  return {
    sandbox,
    account,
    apiKey,
    baseUrl,
    send,
    ask,
    read,
    order,
    until,
    pass: (seconds: number) => sandbox.clock.advance(seconds * 1_000),
    /**
     * Arms a fault at this provider, except for handshakes, which belong to no provider.
     */
    arm: <N extends FaultName>(name: N, given: Arming<N> = {} as Arming<N>) => {
      const { layer } = faultCatalog[name];
      const scope = layer === 'tls' ? {} : { provider };
      return sandbox.faults.arm(name, { ...scope, ...given } as Arming<N>);
    },
    /** Creates an instance that is ONLINE. */
    async make(name = 'one'): Promise<string> {
      const { body, status, text } = await order(name);
      if (status !== 201) throw new Error(text);
      await until(body.id, 'ONLINE');
      return body.id;
    },
    async destroyAll(): Promise<void> {
      const { instances } = (await ask('GET', '/instances')).body;
      for (const { id } of instances) await ask('DELETE', `/instances/${id}`);
    },
    /** Creates a volume that is AVAILABLE. */
    async makeVolume(): Promise<string> {
      const { body, status, text } = await ask('POST', '/volumes', {
        name: 'data',
        size_gb: 20,
        region: orders[letter].region,
      });
      if (status !== 201) throw new Error(text);
      await sandbox.clock.advance(3_000);
      return body.id;
    },
  };
}
export type Bench = Awaited<ReturnType<typeof benchOf>>;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
