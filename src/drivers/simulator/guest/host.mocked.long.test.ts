import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Worker } from 'node:worker_threads';
import ssh2, { type Client } from 'ssh2';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { PATIENCE_MS } from '../../../../test/support/time/until.ts';
import { VirtualClock } from '../../../../test/support/time/virtual-clock.ts';
import type { Endpoint, MachineSpec, PlatformDriver } from '../../../orchestrator/model/platform-driver.ts';
import type { Clock } from '../../../ports/clock.ts';
import { createSimulator } from '../platform/simulator.ts';
import { doneValue, endpointOf, instantly, machineSpec, observe, realClock } from '../simulator.fixture.ts';

const workers = vi.hoisted((): Worker[] => []);
/**
 * Each settles when a worker has ended. Awaited from the start, since a worker that cannot load may end at any time.
 */
const ends = vi.hoisted((): Promise<void>[] => []);
const fate = vi.hoisted(() => ({ canStart: true, endsWithItsAnswer: false }));
vi.mock('node:worker_threads', async (original) => {
  const real = await original<typeof import('node:worker_threads')>();
  class Watched extends real.Worker {
    constructor(...[url, options]: ConstructorParameters<typeof real.Worker>) {
      super(fate.canStart ? url : new URL('./no-such-worker.js', import.meta.url), options);
      workers.push(this);
      ends.push(new Promise((resolve) => this.once('exit', () => resolve())));
    }

    override emit(event: string | symbol, ...args: unknown[]): boolean {
      const [message] = args as [{ kind?: string } | undefined];
      if (event !== 'message' || message?.kind !== 'value' || !fate.endsWithItsAnswer)
        return super.emit(event, ...args);
      // Node delivers the remaining messages of an ended thread together with its exit.
      fate.endsWithItsAnswer = false;
      const [answer] = this.listeners('message');
      this.prependOnceListener('exit', () => answer?.(message));
      void this.terminate();
      return true;
    }
  }
  return { ...real, Worker: Watched };
});

const key = ssh2.utils.generateKeyPairSync('ed25519');
let driver: PlatformDriver;
function simulate(clock: Clock): Promise<PlatformDriver> {
  const capacity = [{ offerId: 'h100', datacenter: 'fra', units: 8, spot: false }];
  return createSimulator({ stateFile: ':memory:', capacity, platform: instantly }, clock);
}
beforeEach(async () => {
  driver = await simulate(realClock);
});
afterEach(() => driver.close());

async function boot(overrides: Partial<MachineSpec> = {}): Promise<Endpoint> {
  const spec = machineSpec({ sshKeys: [key.public.trim()], ...overrides });
  doneValue(await driver.create(spec, null));
  return endpointOf(await observe(driver, spec.ref));
}

function connect({ publicIp: host, sshPort: port, sshUsername: username }: Endpoint): Promise<Client> {
  const client = new ssh2.Client();
  return new Promise((resolve, reject) => {
    client.once('ready', () => resolve(client)).once('error', reject);
    client.connect({ host, port, username, privateKey: key.private, readyTimeout: PATIENCE_MS });
  });
}

/** Runs a command, or feeds `input` to a shell, and returns the output. */
async function run(endpoint: Endpoint, command: string, input?: string): Promise<string> {
  const client = await connect(endpoint);
  try {
    return await new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      const begin = (error: Error | undefined, channel: ssh2.ClientChannel): void => {
        if (error) {
          reject(error);
          return;
        }
        channel.on('data', (chunk: Buffer) => chunks.push(chunk));
        channel.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
        channel.once('close', () => resolve(Buffer.concat(chunks).toString()));
        channel.end(input ?? '');
      };
      if (input === undefined) client.exec(command, begin);
      else client.shell(false, begin);
    });
  } finally {
    client.end();
  }
}

it.each([
  ['assignments that double', `${'A=$A$A;'.repeat(64)}`],
  ['a file that is read again and again into a pipe', `${'cat /f '.repeat(200)} | wc`],
])('a runcmd line ends neither the platform nor its other guests: %s', async (_, line) => {
  const before = process.memoryUsage().rss;
  const endpoint = await boot({ cloudInit: { runcmd: [line] } });
  expect(await run(endpoint, 'cloud-init status --wait')).toBe('status: done\n');
  expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 * 1024);
});

it('a tenant with thousands of commands in many sessions does not block the platform', async () => {
  const [tenant, neighbour] = [await boot(), await boot({ ref: 'berth-2' })];
  const delays = monitorEventLoopDelay({ resolution: 10 });
  delays.enable();
  const line = `${'ls -l /;'.repeat(250)}\n`;
  const floods = Array.from({ length: 16 }, () => run(tenant, '', line.slice(0, 60_000)));
  const answers: number[] = [];
  for (let round = 0; round < 5; round++) {
    const begunAt = performance.now();
    expect(await run(neighbour, 'hostname')).toBe('gpu-1\n');
    answers.push(performance.now() - begunAt);
  }
  await Promise.all(floods);
  delays.disable();
  expect(delays.max / 1e6).toBeLessThan(1_000);
  expect(Math.max(...answers)).toBeLessThan(10_000);
});

it('restarts every guest at its address when the guest thread ends', async () => {
  const endpoint = await boot();
  await run(endpoint, 'echo kept > note');
  await workers.at(-1)?.terminate();
  await vi.waitFor(async () => expect(await run(endpoint, 'cat note')).toBe('kept\n'), {
    timeout: PATIENCE_MS,
  });
  expect(endpointOf(await observe(driver, 'berth-1'))).toEqual(endpoint);
});

it('restarts a guest whose thread ends at the moment of its answer', async () => {
  fate.endsWithItsAnswer = true;
  const endpoint = await boot();
  await vi.waitFor(async () => expect(await run(endpoint, 'hostname')).toBe('gpu-1\n'), {
    timeout: PATIENCE_MS,
  });
});

it('retries with increasing delays, up to a minute, when no thread starts', async () => {
  await driver.close();
  const clock = new VirtualClock();
  driver = await simulate(clock);
  const endpoint = await boot();
  const first = workers.length;
  fate.canStart = false;
  try {
    await workers.at(-1)?.terminate();
    const startedAfterS: number[] = [];
    const begunAt = clock.now();
    while (startedAfterS.length < 9) {
      const started = workers.length;
      while (workers.length === started) await clock.advance(workers.length === first ? 0 : 1_000);
      expect(workers.length).toBe(started + 1);
      startedAfterS.push((clock.now() - begunAt) / 1_000);
      await ends.at(-1);
    }
    expect(startedAfterS).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183]);
  } finally {
    fate.canStart = true;
  }
  await clock.advance(60_000);
  await vi.waitFor(async () => expect(await run(endpoint, 'hostname')).toBe('gpu-1\n'), {
    timeout: PATIENCE_MS,
  });
});

it('does not run a runcmd line again that was running when the thread ended', async () => {
  const endpoint = await boot({
    cloudInit: { runcmd: ['echo x >> /srv/count; sleep 600', 'echo y >> /srv/count'] },
  });
  await vi.waitFor(async () => expect(await run(endpoint, 'cat /srv/count')).toBe('x\n'), {
    timeout: PATIENCE_MS,
  });
  await workers.at(-1)?.terminate();
  await vi.waitFor(async () => expect(await run(endpoint, 'cat /srv/count')).toBe('x\ny\n'), {
    timeout: PATIENCE_MS,
  });
  expect(await run(endpoint, 'cloud-init status --wait')).toBe('status: done\n');
});
