import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { OwnerRef, PlatformDriver } from '../../../src/orchestrator/model/platform-driver.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import { type Prepared, prepareOrchestrator } from '../../orchestrator/accounts.ts';
import { quiet } from '../quiet.fixture.ts';
import { runEngine } from '../run.ts';
import type { EngineRun } from '../world.ts';
import type { OpenStackEngine } from './engine.ts';
import { URLS } from './memory-cloud.fixture.ts';

let prepared: Prepared;
beforeAll(async () => {
  prepared = await prepareOrchestrator();
});
afterAll(() => rmSync(prepared.folder, { recursive: true, force: true }));

const COMMANDS = 40;
const SEEDS = 4;

type Plant = NonNullable<EngineRun['plant']>;
type Wrong = (engine: OpenStackEngine, process: ServerProcess, ref: OwnerRef) => Promise<unknown>;

/** Sends a wrong request to the cloud once a call of the driver is done. */
const after =
  (method: 'stop' | 'destroy', wrong: Wrong): Plant =>
  (driver, process, world) => ({
    ...driver,
    [method]: async (ref: OwnerRef, ...rest: unknown[]) => {
      const call = driver[method] as (...args: unknown[]) => ReturnType<PlatformDriver['stop']>;
      const step = await call(ref, ...rest);
      if (step.outcome === 'done') await wrong(world.engine as OpenStackEngine, process, ref);
      return step;
    },
  });

const removeStopped = after('stop', async (engine, process, ref) => {
  const server = [...engine.cloud.servers.values()].find(({ name }) => name === ref);
  if (server !== undefined) await engine.request(process, 'DELETE', `${URLS.nova}/servers/${server.id}`);
});
const leaveVolume = after('destroy', (engine, process, ref) => {
  const volume = { name: ref, size: 1, metadata: { berth_ref: ref } };
  return engine.request(process, 'POST', `${URLS.cinder}/volumes`, { volume });
});
const leavePort = after('destroy', (engine, process, ref) => {
  const port = { name: ref, network_id: engine.cloud.networks[0]?.id, description: `berth ${ref} made` };
  return engine.request(process, 'POST', `${URLS.neutron}/ports`, { port });
});
const stopTwice: Plant = (driver) => ({
  ...driver,
  stop: (...args) => {
    void driver.stop(...args).catch(() => undefined);
    return driver.stop(...args);
  },
});

it.each([
  ['I36', 'a machine that was stopped is deleted', removeStopped],
  ['I38', 'a stop is sent twice at once', stopTwice],
  ['I40', 'a volume is left when a machine is destroyed', leaveVolume],
  ['I40', 'a port is left when a machine is destroyed', leavePort],
] as const satisfies readonly [string, string, Plant][])(
  '%s is broken where %s',
  { timeout: 240_000 },
  async (invariant, _, plant) => {
    const broken: (string | undefined)[] = [];
    for (let seed = 1; seed <= SEEDS; seed++) {
      const run = { engine: 'openstack', scenario: quiet, plant } as const;
      const { failure } = await runEngine(prepared, String(seed), COMMANDS, run);
      if (failure?.invariant === invariant) return;
      broken.push(failure?.message.split('\n')[0]);
    }
    expect.fail(`no seed breaks it: ${broken.join('; ')}`);
  },
);

it('every invariant holds where nothing goes wrong', { timeout: 120_000 }, async () => {
  const { failure } = await runEngine(prepared, '1', COMMANDS, { engine: 'openstack', scenario: quiet });
  expect(failure?.message).toBeUndefined();
});
