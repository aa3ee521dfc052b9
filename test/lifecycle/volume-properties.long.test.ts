import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type FaultyDriver, withFaults } from '../../src/drivers/kit/faults.ts';
import type { PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import { type Store, StoreUnavailable } from '../../src/orchestrator/model/store.ts';
import type { Fault } from '../../src/platform-model/call-faults.ts';
import { startTestOrchestrator, type TestOrchestrator } from '../support/orchestrator.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';

type Command =
  | { do: 'instance'; volume: number }
  | { do: 'volume'; instance: number }
  | { do: 'attach' | 'detach'; volume: number; instance: number }
  | { do: 'delete-volume'; volume: number }
  | { do: 'stop' | 'start' | 'delete' | 'power-off'; instance: number }
  | { do: 'wait'; ms: number };

const index = fc.nat({ max: 2 });
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ do: fc.constant('instance' as const), volume: index }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('volume' as const), instance: index }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('attach' as const), volume: index, instance: index }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('detach' as const), volume: index, instance: index }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete-volume' as const), volume: index }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('stop' as const, 'start' as const, 'power-off' as const, 'delete' as const),
      instance: index,
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat({ max: 150 }) }) },
);
const fault = fc.oneof(
  { weight: 10, arbitrary: fc.constant<Fault>('none') },
  { weight: 1, arbitrary: fc.constantFrom<Fault>('fail-before', 'fail-after') },
);
/** What a write meets: nothing, a store that refuses it, or one whose answer to it is lost. */
const storeFault = fc.oneof(
  { weight: 12, arbitrary: fc.constant('none' as const) },
  { weight: 1, arbitrary: fc.constantFrom('refused' as const, 'lost' as const) },
);

it('whatever is asked of instances and their volumes, and whatever fails: all of it comes to rest, as the platform has it', async () => {
  const run = fc.asyncProperty(
    fc.constantFrom('hot', 'cold'),
    fc.array(command, { minLength: 20, maxLength: 35 }),
    fc.array(fault, { minLength: 50, maxLength: 50 }),
    fc.array(storeFault, { minLength: 70, maxLength: 70 }),
    async (attach_volume, commands, faults, storeFaults) => {
      const chaos = { isOn: true, calls: 0, writes: 0 };
      let faulty: FaultyDriver | undefined;
      const wrapDriver = (driver: PlatformDriver): PlatformDriver => {
        faulty = withFaults(driver, ({ method }) =>
          chaos.isOn && !/list|get/.test(method) ? (faults[chaos.calls++ % faults.length] ?? 'none') : 'none',
        );
        return faulty;
      };
      await using orchestrator = await startTestOrchestrator({
        wrapDriver,
        wrapStore: (store) =>
          withStoreFaults(store, () =>
            chaos.isOn && chaos.writes++ > 10
              ? (storeFaults[chaos.writes % storeFaults.length] ?? 'none')
              : 'none',
          ),
        reconcile: { lease_s: 0.5, watch_interval_s: 0.05 },
        platform: {
          attach_volume,
          boot_ms: [0, 30],
          stop_ms: [0, 40],
          start_ms: [0, 30],
          volume_ms: [0, 60],
        },
      });
      const made: Made = { instances: [], volumes: [], chaos };
      for (const step of commands) await perform(orchestrator, step, made);
      chaos.isOn = false;
      await comesToRest(orchestrator, made);
      for (const id of made.instances) await orchestrator.request('DELETE', `/instances/${id}`);
      for (const id of made.instances) await orchestrator.waitFor(id, 'GONE');
      await atRest(orchestrator);
      for (const id of made.volumes) await orchestrator.request('DELETE', `/volumes/${id}`);
      await atRest(orchestrator);
      expect(await orchestrator.simulator.list()).toEqual({ answer: 'listed', items: [] });
      expect(await orchestrator.simulator.volumes?.list()).toEqual({ answer: 'listed', items: [] });
      expect(await orchestrator.store.read.claims.use()).toEqual([]);
    },
  );
  await fc.assert(run, { numRuns: 12, seed: 20261121, endOnFailure: true });
});

interface Made {
  chaos: { isOn: boolean };
  instances: string[];
  volumes: string[];
}

function withStoreFaults(store: Store, next: () => 'none' | 'refused' | 'lost'): Store {
  return {
    ...store,
    transact: async (body) => {
      const fault = next();
      if (fault === 'refused') throw new StoreUnavailable('refused by the test');
      const result = await store.transact(body);
      if (fault === 'lost') throw new StoreUnavailable('the answer is lost by the test');
      return result;
    },
  };
}

async function perform(orchestrator: TestOrchestrator, step: Command, made: Made): Promise<void> {
  const { request, simulator } = orchestrator;
  const instance = 'instance' in step ? made.instances[step.instance] : undefined;
  const volume = 'volume' in step ? made.volumes[step.volume] : undefined;
  switch (step.do) {
    case 'wait':
      return void (await new Promise((resolve) => setTimeout(resolve, step.ms)));
    case 'instance':
      return make(
        orchestrator,
        '/instances',
        instanceRequest(volume === undefined ? {} : { volume_ids: [volume] }),
        made.instances,
        made.chaos,
      );
    case 'volume':
      return make(
        orchestrator,
        '/volumes',
        volumeRequest(instance === undefined ? {} : { instance_ids: [instance] }),
        made.volumes,
        made.chaos,
      );
    case 'power-off':
      return void (await simulator.stop(`berth-${instance}`, null));
    case 'delete-volume':
      return void (await request('DELETE', `/volumes/${volume}`));
    case 'delete':
      return void (await request('DELETE', `/instances/${instance}`));
    case 'stop':
    case 'start':
      return void (await request('POST', `/instances/${instance}/${step.do}`));
    case 'attach':
    case 'detach': {
      const body = { instance_ids: [instance ?? 'inst-none'] };
      return void (await request('POST', `/volumes/${volume}/${step.do}`, { body }));
    }
  }
}

async function make(
  { request }: TestOrchestrator,
  path: string,
  body: Record<string, unknown>,
  made: string[],
  chaos: Made['chaos'],
): Promise<void> {
  if (made.length === 3) return;
  // What a create with a lost 201 made would be missing from `made`.
  chaos.isOn = false;
  const reply = await request('POST', path, { body });
  chaos.isOn = true;
  if (reply.status === 201) made.push(String(reply.body['id']));
}

async function atRest({ store }: TestOrchestrator): Promise<void> {
  await until('nothing is left to do', async () => (await store.read.work.backlog()).count === 0);
}

/** Nothing is left to do, nothing is half done, and rows and platform say the same. */
async function comesToRest(orchestrator: TestOrchestrator, made: Made): Promise<void> {
  const { store, simulator } = orchestrator;
  await atRest(orchestrator);
  for (const id of made.instances) {
    const record = await store.read.instances.byId(id);
    expect(['ONLINE', 'STOPPED', 'ERROR', 'DESTROYED', 'OFFLINE']).toContain(record?.status);
    expect([id, record?.status, record?.attachCycle]).toEqual([id, record?.status, false]);
  }
  for (const id of made.volumes) {
    const record = await store.read.volumes.byId(id);
    if (record === null) throw new Error(`no row of ${id}`);
    const held = await store.read.volumes.attachmentsOfVolume(id);
    const found = await simulator.volumes?.get(record.ownerRef);
    if (record.deletedAt !== null) {
      expect([found?.answer, held]).toEqual(['gone', []]);
      continue;
    }
    expect(['AVAILABLE', 'ATTACHED', 'ERROR']).toContain(record.status);
    expect(found).toMatchObject({
      value: { attachedTo: held.map(({ instanceId }) => `berth-${instanceId}`) },
    });
  }
}
