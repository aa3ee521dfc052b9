import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { OwnerRef, PlatformDriver } from '../../../src/orchestrator/model/platform-driver.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import { type Prepared, prepareOrchestrator } from '../../orchestrator/accounts.ts';
import { quiet } from '../quiet.fixture.ts';
import { runEngine } from '../run.ts';
import type { EngineScenario } from '../scenario.ts';
import type { EngineRun, EngineWorld } from '../world.ts';
import type { IncusEngine } from './engine.ts';

let prepared: Prepared;
beforeAll(async () => {
  prepared = await prepareOrchestrator();
});
afterAll(() => rmSync(prepared.folder, { recursive: true, force: true }));

const COMMANDS = 40;
const SEEDS = 4;
const POOL = '/1.0/storage-pools/default/volumes/custom';

type Plant = NonNullable<EngineRun['plant']>;
type Request = Parameters<IncusEngine['request']>[1];

/** Sends a wrong request to Incus once a call of the driver is done. */
const after =
  (method: 'stop' | 'destroy', wrong: (ref: OwnerRef) => Request): Plant =>
  (driver, process, world) => ({
    ...driver,
    [method]: async (ref: OwnerRef, ...rest: unknown[]) => {
      const call = driver[method] as (...args: unknown[]) => ReturnType<PlatformDriver['stop']>;
      const step = await call(ref, ...rest);
      if (step.outcome === 'done') await request(world, process, wrong(ref));
      return step;
    },
  });

const request = ({ engine }: EngineWorld, process: ServerProcess, what: Request): Promise<unknown> =>
  (engine as IncusEngine).request(process, what);

const removeStopped = after('stop', (ref) => ({ method: 'DELETE', path: `/1.0/instances/${ref}` }));
const leaveVolume = after('destroy', (ref) => ({
  method: 'POST',
  path: POOL,
  body: { name: ref },
}));
/** R3: a create that comes late makes a second volume of the same name on another member, and the first is removed for it. */
const replaceVolume: Plant = ({ volumes, ...driver }, process, world) => ({
  ...driver,
  ...(volumes !== undefined && {
    volumes: {
      ...volumes,
      create: async (spec, ...rest) => {
        const step = await volumes.create(spec, ...rest);
        const other = world.engine.hosts.find(
          ({ name }) => step.outcome === 'done' && name !== step.value.host,
        );
        if (step.outcome !== 'done' || step.value.host === undefined || other === undefined) return step;
        const { ref } = spec;
        await request(world, process, {
          method: 'POST',
          path: POOL,
          query: { target: other.name },
          body: { name: ref },
        });
        await request(world, process, {
          method: 'DELETE',
          path: `${POOL}/${ref}`,
          query: { target: step.value.host },
        });
        return step;
      },
    },
  }),
});
const stopTwice: Plant = (driver) => ({
  ...driver,
  stop: (...args) => {
    void driver.stop(...args).catch(() => undefined);
    return driver.stop(...args);
  },
});

it.each([
  ['I36', 'a machine that was stopped is deleted', removeStopped, {}],
  ['I36', 'of two volumes with one name the first is removed (R3)', replaceVolume, { hosts: 3 }],
  ['I38', 'a stop is sent twice at once', stopTwice, {}],
  ['I40', 'a volume is left when a machine is destroyed', leaveVolume, {}],
] as const satisfies readonly [string, string, Plant, Partial<EngineScenario>][])(
  '%s is broken where %s',
  { timeout: 120_000 },
  async (invariant, _, plant, changes) => {
    const broken: (string | undefined)[] = [];
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { failure } = await runEngine(prepared, String(seed), COMMANDS, {
        engine: 'incus',
        scenario: { ...quiet, ...changes },
        plant,
      });
      if (failure?.invariant === invariant) return;
      broken.push(failure?.message.split('\n')[0]);
    }
    expect.fail(`no seed breaks it: ${broken.join('; ')}`);
  },
);

it('every invariant holds where nothing goes wrong', { timeout: 120_000 }, async () => {
  const { failure } = await runEngine(prepared, '1', COMMANDS, { engine: 'incus', scenario: quiet });
  expect(failure?.message).toBeUndefined();
});
