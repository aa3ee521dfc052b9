import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { idOf } from '../../src/orchestrator/model/attempt.ts';
import type { OwnerRef, PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import type { ServerProcess } from '../kernel/process.ts';
import { type Prepared, prepareOrchestrator } from '../orchestrator/accounts.ts';
import type { LibvirtEngine } from './libvirt/engine.ts';
import { quiet } from './quiet.fixture.ts';
import { runEngine } from './run.ts';
import type { EngineScenario } from './scenario.ts';
import type { EngineRun, EngineWorld } from './world.ts';

let prepared: Prepared;
beforeAll(async () => {
  prepared = await prepareOrchestrator();
});
afterAll(() => rmSync(prepared.folder, { recursive: true, force: true }));

const COMMANDS = 40;
const SEEDS = 4;

type Plant = NonNullable<EngineRun['plant']>;

/** Does something wrong once a call of the driver is done. */
const after =
  (
    method: 'create' | 'stop' | 'destroy',
    wrong: (world: EngineWorld, process: ServerProcess, ref: OwnerRef) => Promise<unknown>,
    isAt: (outcome: string) => boolean = (outcome) => outcome === 'done',
  ): Plant =>
  (driver, process, world) => ({
    ...driver,
    [method]: async (first: OwnerRef | { ref: OwnerRef }, ...rest: unknown[]) => {
      const call = driver[method] as (...args: unknown[]) => ReturnType<PlatformDriver['stop']>;
      const step = await call(first, ...rest);
      if (isAt(step.outcome)) await wrong(world, process, typeof first === 'string' ? first : first.ref);
      return step;
    },
  });

const command = ({ engine }: EngineWorld, ...args: Parameters<LibvirtEngine['command']>) =>
  (engine as LibvirtEngine).command(...args);

const removeDisk = after('stop', (world, process, ref) =>
  command(world, process, 'kvm-1', ['vol-delete', '--pool', 'berth', '--', `${ref}.qcow2`]),
);
const emptyDisk = after('stop', (world, process, ref) =>
  command(world, process, 'kvm-1', ['vol-upload', '--pool', 'berth', `${ref}.qcow2`, '/dev/stdin']),
);
const leaveFile = after('destroy', (world, process, ref) =>
  command(world, process, 'kvm-1', ['vol-create-as', 'berth', `${ref}.left`, '1M', '--format', 'raw']),
);
/** Each machine is given the first port of the host. */
const sharePort = after(
  'create',
  async (world, process, ref) => {
    const xml = await command(world, process, 'kvm-1', ['dumpxml', '--inactive', '--', ref]);
    const changed = xml.replace(/host-port="\d+"/, 'host-port="30000"');
    await command(world, process, 'kvm-1', ['define', '/dev/stdin'], changed);
  },
  (outcome) => outcome === 'pending',
);
const createTwice: Plant = (driver) => ({
  ...driver,
  create: (...args) => {
    void driver.create(...args).catch(() => undefined);
    return driver.create(...args);
  },
});
/** What has no row is left out of every listing. */
const overlookRowless: Plant = (driver, _process, { inspector }) => ({
  ...driver,
  list: async () => {
    const listing = await driver.list();
    const hasRow = ({ ref }: { ref: OwnerRef }): boolean =>
      inspector.history.instance(idOf(ref)) !== undefined;
    return listing.answer === 'listed' ? { ...listing, items: listing.items.filter(hasRow) } : listing;
  },
  get: async (ref) => {
    const isKnown = inspector.history.instance(idOf(ref)) !== undefined;
    return isKnown ? driver.get(ref) : { answer: 'gone' };
  },
});

it.each([
  ['I36', 'the disk of a machine that was stopped is removed', removeDisk, {}],
  ['I37', 'the disk of a machine that was stopped is emptied', emptyDisk, {}],
  ['I38', 'a create is sent twice at once', createTwice, {}],
  ['I39', 'what lost its row is overlooked', overlookRowless, { restore: 0.15 }],
  ['I40', 'a file of a machine is left when it is destroyed', leaveFile, {}],
  ['I41', 'two machines are given one port of their host', sharePort, {}],
] as const satisfies readonly [string, string, Plant, Partial<EngineScenario>][])(
  '%s is broken where %s',
  { timeout: 120_000 },
  async (invariant, _, plant, changes) => {
    const broken: (string | undefined)[] = [];
    for (let seed = 1; seed <= SEEDS; seed++) {
      const run = { scenario: { ...quiet, ...changes }, plant };
      const { failure } = await runEngine(prepared, String(seed), COMMANDS, run);
      if (failure?.invariant === invariant) return;
      broken.push(failure?.message.split('\n')[0]);
    }
    expect.fail(`no seed breaks it: ${broken.join('; ')}`);
  },
);

it('every invariant holds where nothing goes wrong', { timeout: 120_000 }, async () => {
  const { failure } = await runEngine(prepared, '1', COMMANDS, { scenario: quiet });
  expect(failure?.message).toBeUndefined();
});
