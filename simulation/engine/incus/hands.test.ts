import { expect, it } from 'vitest';
import { mark } from '../../../src/drivers/incus/translate.ts';
import { Scheduler } from '../../../test/support/time/scheduler.ts';
import { Chance } from '../../kernel/chance.ts';
import { catalog, DATACENTER } from '../catalog.ts';
import { Commands } from '../commands.ts';
import type { Change } from '../engine.ts';
import { IncusEngine, unreachable } from './engine.ts';
import { InstanceApi } from './instance-api.ts';

const REF = 'berth-inst-a';
const MINUTE_MS = 60_000;

/** A cluster whose machine runs on m1, on a scheduler that the test advances. */
async function aRunningMachine() {
  const scheduler = new Scheduler();
  const chance = new Chance('hands');
  const isCalm = (): boolean => true;
  const changes: Change[] = [];
  const engine = new IncusEngine({
    ...{ scheduler, chance, isCalm, catalog, hosts: 3, datacenter: DATACENTER },
    commands: new Commands({
      ...{ scheduler, chance, isCalm, unreachable },
      journal: { note: () => undefined } as never,
      rates: {} as never,
      standStill: () => undefined,
    }),
    observer: { changed: (change) => changes.push(change) },
  });
  const api = new InstanceApi(engine.cluster);
  const sent = { path: '', match: undefined, by: 'a person' as const };
  const config = { [mark.createdBy]: 'berth', [mark.ref]: REF };
  await api.make({ ...sent, method: 'POST', query: { target: 'm1' }, body: { name: REF, config } });
  const pass = (ms: number): Promise<void> => scheduler.runUntil(scheduler.now + ms);
  await pass(2 * MINUTE_MS);
  await api.setPower(REF, { ...sent, method: 'PUT', query: {}, body: { action: 'start' } });
  await pass(MINUTE_MS);
  const moveTo = async (host: string): Promise<void> => {
    const [machine] = engine.machines();
    expect(machine && engine.hands.move(machine, host)).toBe(true);
  };
  return { engine, api, changes, sent, pass, moveTo };
}

it('a record that an interrupted move left is no second machine, also once the machine was moved again', async () => {
  const { engine, api, changes, sent, pass, moveTo } = await aRunningMachine();
  const records = engine.cluster.instances;
  await moveTo('m3');
  while (records.size === 1) await pass(100);
  engine.cluster.member('m1').ends++;
  await pass(2 * MINUTE_MS);
  expect([...records.keys()]).toEqual([REF, expect.stringMatching(/^move-of-/)]);

  await api.setPower(REF, { ...sent, method: 'PUT', query: {}, body: { action: 'start' } });
  await pass(MINUTE_MS);
  changes.length = 0;
  await moveTo('m2');
  await pass(5 * MINUTE_MS);
  expect(records.size).toBe(2);
  expect(engine.machines()).toMatchObject([{ name: REF, host: 'm2', power: 'running' }]);
  // The record has the identity of the machine: the guest of the machine has booted once all the same.
  engine.cluster.observe('a person');
  expect(changes.filter(({ what }) => what === 'machine booted')).toHaveLength(1);
});

it('a record that an interrupted move left is the machine once the machine itself is deleted', async () => {
  const { engine, pass, moveTo } = await aRunningMachine();
  await moveTo('m3');
  while (engine.cluster.instances.size === 1) await pass(100);
  engine.cluster.member('m1').ends++;
  await pass(2 * MINUTE_MS);
  engine.cluster.instances.delete(REF);
  expect(engine.machines()).toMatchObject([{ ref: REF, host: 'm3' }]);
});
