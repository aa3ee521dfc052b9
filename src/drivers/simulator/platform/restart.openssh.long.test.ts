import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type {
  MachineSpec,
  ObservedMachine,
  PlatformDriver,
} from '../../../orchestrator/model/platform-driver.ts';
import type { SimulatorOptions } from '../options.ts';
import {
  doneValue,
  endpointOf,
  instantly,
  machineSpec,
  observe,
  realClock,
  Workstation,
} from '../simulator.fixture.ts';
import { createSimulator } from './simulator.ts';

let directory: string;
let user: Workstation;
let spec: MachineSpec;
let options: SimulatorOptions;
const open: PlatformDriver[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'berth-sim-'));
  user = new Workstation();
  spec = machineSpec({ sshKeys: [user.makeKey('key', '-t', 'ed25519')] });
  options = {
    stateFile: join(directory, 'platform.db'),
    capacity: [{ offerId: 'h100', datacenter: 'fra', units: 2, spot: false }],
    platform: instantly,
  };
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((driver) => driver.close()));
  user.close();
  rmSync(directory, { recursive: true });
});

async function start(platform: SimulatorOptions['platform'] = instantly): Promise<PlatformDriver> {
  const driver = await createSimulator({ ...options, platform }, realClock);
  open.push(driver);
  return driver;
}

async function stop(driver: PlatformDriver): Promise<void> {
  open.splice(open.indexOf(driver), 1);
  await driver.close();
}

/** The end of the machine's boot according to the state file. */
function storedEnd(): unknown {
  const db = new Database(options.stateFile, { readonly: true });
  const row = db.prepare("SELECT body ->> 'until' AS until FROM records WHERE kind = 'machine'").get();
  db.close();
  return (row as { until: unknown }).until;
}

async function run(machine: ObservedMachine, command: string): Promise<string> {
  const { status, stdout, stderr } = await user.ssh(endpointOf(machine), 'key', [command]);
  expect(status, stderr).toBe(0);
  return stdout;
}

it('has every machine back after a restart: same address, same host key, same disk', async () => {
  const first = await start();
  const machine = doneValue(await first.create(spec, null));
  await run(machine, 'echo kept > note');
  await stop(first);

  const second = await start();
  expect(await observe(second, 'berth-1')).toEqual(machine);
  expect(await run(machine, 'cat note')).toBe('kept\n');
});

it('does not run a runcmd line again that was running when the process ended', async () => {
  const runcmd = ['echo x >> /srv/count; sleep 600', 'echo y >> /srv/count'];
  const first = await start();
  const machine = doneValue(await first.create({ ...spec, cloudInit: { runcmd } }, null));
  await expect.poll(() => run(machine, 'cat /srv/count')).toBe('x\n');
  await stop(first);

  await start();
  await expect.poll(() => run(machine, 'cat /srv/count')).toBe('x\ny\n');
  expect(await run(machine, 'cloud-init status --wait')).toBe('status: done\n');
});

it('keeps a stopped machine stopped, with its port closed', async () => {
  const first = await start();
  const machine = doneValue(await first.create(spec, null));
  doneValue(await first.stop('berth-1', null));
  await stop(first);

  const second = await start();
  expect(await observe(second, 'berth-1')).toMatchObject({ power: 'stopped' });
  expect(await user.ssh(endpointOf(machine), 'key', ['true'])).toMatchObject({ status: 255 });
});

it('takes another port if its own is in use, and logs it', async () => {
  const first = await start();
  const machine = doneValue(await first.create(spec, null));
  const { sshPort } = endpointOf(machine);
  await stop(first);
  const squatter: Server = createServer().listen(sshPort, '127.0.0.1');
  await once(squatter, 'listening');

  const second = await start();
  const moved = await observe(second, 'berth-1');
  expect(endpointOf(moved).sshPort).not.toBe(sshPort);
  expect(endpointOf(moved).portForwards).toEqual([
    { internal_port: 22, external_port: endpointOf(moved).sshPort },
  ]);
  expect(await run(moved, 'whoami')).toBe('ubuntu\n');
  await new Promise((resolve) => squatter.close(resolve));
});

it('does not draw again: a boot ends at its original time', async () => {
  const slowly = { ...instantly, bootMs: [60_000, 60_000] } satisfies SimulatorOptions['platform'];
  const first = await start(slowly);
  await first.create(spec, null);
  await stop(first);
  const before = storedEnd();
  const second = await start({ ...instantly, seed: 2 });
  expect(await second.create(spec, null)).toMatchObject({ outcome: 'pending' });
  expect([before, storedEnd()]).toEqual([expect.any(Number), before]);
});

it('survives kill -9: every answered call is stored', async () => {
  const child = spawn(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `const { createSimulator } = await import(${JSON.stringify(new URL('./simulator.ts', import.meta.url).href)});
       const clock = { now: () => Date.now(), setTimer: (ms, call) => { const timer = setTimeout(call, ms); return { cancel: () => clearTimeout(timer) }; } };
       const driver = await createSimulator(${JSON.stringify(options)}, clock);
       const step = await driver.create(${JSON.stringify(spec)}, null);
       await driver.volumes.create({ ref: 'vol-1', datacenter: 'fra', sizeGb: 1 }, null);
       await driver.volumes.attach('vol-1', 'berth-1', null);
       console.log(JSON.stringify(step.value));`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const [output] = (await once(child.stdout, 'data')) as [Buffer];
  const machine = JSON.parse(output.toString()) as ObservedMachine;
  await run(machine, 'echo kept > /mnt/vol-1/note');
  child.kill('SIGKILL');
  await once(child, 'exit');

  const driver = await start();
  expect(await observe(driver, 'berth-1')).toEqual(machine);
  expect(await run(machine, 'cat /mnt/vol-1/note')).toBe('kept\n');
});
