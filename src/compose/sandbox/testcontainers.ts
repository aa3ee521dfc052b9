import type { Readable } from 'node:stream';

const PORT = 8099;
/** The line that `berth sandbox --json` prints when it is ready. */
const READY = /^(\{"origin":.*\})\r?$/m;

/** The methods of testcontainers' `GenericContainer` that are used here. */
export interface Container {
  withExposedPorts(port: number): this;
  withCommand(command: string[]): this;
  start(): Promise<StartedContainer>;
}

/** The methods of testcontainers' `StartedTestContainer` that are used here. */
export interface StartedContainer {
  getHost(): string;
  getMappedPort(port: number): number;
  logs(): Promise<Readable>;
  stop(): Promise<unknown>;
}

export interface ContainerOptions {
  /** Such as `['a', 'b']`. */
  providers?: readonly string[];
  seed?: number | string;
  clock?: 'virtual' | 'real';
  marketplace?: boolean;
  /** Names under which this machine and other containers reach the container, besides `localhost` and addresses. */
  hosts?: readonly string[];
}

interface Access {
  baseUrl: string;
  apiKey: string;
}

/** A sandbox in a container, at addresses that are reachable from this machine. */
export interface SandboxContainer extends AsyncDisposable {
  origin: string;
  /** By name, such as `provider-a`. */
  providers: Record<string, Access>;
  marketplace?: Access;
  control: Access;
  stop(): Promise<void>;
}

/**
 * Starts a sandbox in a container, such as `startSandboxContainer(new GenericContainer('berth'))`.
 * @throws {Error} with its output if it ends before it is ready
 */
export async function startSandboxContainer(
  container: Container,
  { providers = ['a'], seed = 1, clock = 'real', marketplace = false, hosts = [] }: ContainerOptions = {},
): Promise<SandboxContainer> {
  const started = await container
    .withExposedPorts(PORT)
    .withCommand([
      'sandbox',
      ...['--host', '0.0.0.0', '--port', String(PORT), '--json'],
      ...['--providers', providers.join(','), '--seed', String(seed), '--clock', clock],
      ...(marketplace ? ['--marketplace'] : []),
      ...(hosts.length > 0 ? ['--hosts', hosts.join(',')] : []),
    ])
    .start();
  const stop = async (): Promise<void> => void (await started.stop());
  try {
    const ready = await readReadyLine(await started.logs());
    const origin = `http://${started.getHost()}:${started.getMappedPort(PORT)}`;
    const reached = ({ base_url, api_key }: ReadyAccess): Access => ({
      baseUrl: base_url.replace(ready.origin, origin),
      apiKey: api_key,
    });
    const each = Object.entries(ready.providers).map(([name, access]) => [name, reached(access)]);
    return {
      origin,
      providers: Object.fromEntries(each),
      control: reached(ready.control),
      ...(ready.marketplace !== undefined && { marketplace: reached(ready.marketplace) }),
      stop,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

interface ReadyAccess {
  base_url: string;
  api_key: string;
}

interface Ready {
  origin: string;
  providers: Record<string, ReadyAccess>;
  marketplace?: ReadyAccess;
  control: ReadyAccess;
}

async function readReadyLine(logs: Readable): Promise<Ready> {
  let text = '';
  for await (const chunk of logs) {
    text += String(chunk);
    const line = READY.exec(text)?.[1];
    if (line !== undefined) return JSON.parse(line);
  }
  throw new Error(`The sandbox ended before it was ready; it printed: ${text.trim()}`);
}
