import { expect, it } from 'vitest';
import { anOrder } from '../../../test/support/rows/orchestrator-rows.ts';
import type { Instance, Volume } from './api.ts';
import { driverOver } from './driver.fixture.ts';
import { mark } from './translate.ts';

const REF = 'berth-a';
const whole = { [mark.createdBy]: 'berth', [mark.ref]: REF, [mark.note]: 'a note' };
const { [mark.ref]: _ref, ...part } = whole;

/** A daemon with one instance and one volume of that name, both with this configuration. */
function aDaemon(config: Record<string, string>, code = 102) {
  const sent: string[] = [];
  const common = { name: REF, created_at: '2026-11-23T01:00:00Z', location: 'none', config };
  const state = { status_code: code };
  const instance = {
    ...common,
    type: 'container',
    status_code: code,
    devices: {},
    state,
  } as unknown as Instance;
  const volume: Volume = { ...common, type: 'custom', used_by: [] };
  const api = {
    instance: async () => instance,
    operations: async () => [],
    hosts: async () => ({ answered: [], silent: [] }),
    volumes: async () => [volume],
    client: { project: 'default', send: async (method: string) => void sent.push(method) },
  };
  const instances = { read: async () => ({ instances: [instance], names: [REF], silent: new Set() }) };
  const driver = driverOver(api, { instances });
  return { sent, machines: driver, volumes: driver.volumes };
}

const SAID = expect.stringContaining("only a part of Berth's mark");

it('a machine with an incomplete mark is unknown, never gone, and left alone [incus-lost-mark]', async () => {
  const { machines, sent } = aDaemon(part);
  expect(await machines.get(REF)).toEqual({ answer: 'unknown', reason: SAID });
  expect(await machines.destroy(REF, null, anOrder)).toMatchObject({
    outcome: 'failed',
    code: 'transient',
    detail: SAID,
  });
  expect(sent).toEqual([]);
});

it('a volume with an incomplete mark is unknown, never gone, and left alone', async () => {
  const { volumes, sent } = aDaemon(part);
  expect(await volumes.get(REF)).toEqual({ answer: 'unknown', reason: SAID });
  expect(await volumes.destroy(REF, null, anOrder)).toMatchObject({ outcome: 'failed', detail: SAID });
  expect(sent).toEqual([]);
});

it('without a mark they are not Berth’s, and an incomplete copy of a move is not a volume yet', async () => {
  const foreign = aDaemon({ 'user.theirs': 'x' });
  expect(await foreign.machines.get(REF)).toMatchObject({ answer: 'gone' });
  expect(await foreign.volumes.get(REF)).toEqual({ answer: 'gone' });
  expect(await aDaemon({ [mark.copyOf]: REF }).volumes.get(REF)).toEqual({ answer: 'gone' });
  expect(await aDaemon(whole).volumes.get(REF)).toMatchObject({ answer: 'observed' });
});

it('an instance that its member lists without a configuration is unknown', async () => {
  const reason = `Incus shows ${REF} in the state Error`;
  expect(await aDaemon({}, 112).machines.get(REF)).toEqual({ answer: 'unknown', reason });
});

it('an instance that Incus lists but does not find is unknown: its pool or its network may be missing', async () => {
  const api = {
    instance: async () => undefined,
    operations: async () => [],
    instanceNames: async () => [REF],
  };
  const instances = { read: async () => ({ instances: [], names: [REF], silent: new Set() }) };
  const machines = driverOver(api, { instances });
  expect(await machines.get(REF)).toEqual({
    answer: 'unknown',
    reason: `Incus lists ${REF}, but does not find it`,
  });
});
