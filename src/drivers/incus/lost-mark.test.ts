import { expect, it } from 'vitest';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import { anOrder } from '../../orchestrator/model/destroy-order.fixture.ts';
import type { IncusApi, Instance, Volume } from './api.ts';
import { type MachineDeps, Machines } from './machines.ts';
import { incusConfigSchema } from './options.ts';
import { mark } from './translate.ts';
import { type VolumeDeps, Volumes } from './volumes.ts';

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
  } as unknown as IncusApi;
  const instances = { read: async () => ({ instances: [instance], names: [REF], silent: new Set() }) };
  const options = incusConfigSchema.parse({ driver: 'incus' });
  const catalog = { offers: new Map(), regions: new Map() } as unknown as Catalog;
  return {
    sent,
    machines: new Machines({ api, options, catalog, instances } as unknown as MachineDeps),
    volumes: new Volumes({ api, options } as unknown as VolumeDeps),
  };
}

const WORDS = "only a part of Berth's mark";
const SAID = expect.stringContaining(WORDS);

it('a machine that has lost a part of its mark is unknown and never gone, and is left as it is [incus-lost-mark]', async () => {
  const { machines, sent } = aDaemon(part);
  expect(await machines.get(REF)).toEqual({ answer: 'unknown', reason: SAID });
  expect(await machines.destroy(REF, null, anOrder)).toMatchObject({
    outcome: 'failed',
    code: 'transient',
    detail: SAID,
  });
  expect(sent).toEqual([]);
});

it('and so is a volume', async () => {
  const { volumes, sent } = aDaemon(part);
  await expect(volumes.get(REF)).rejects.toThrow(WORDS);
  await expect(volumes.destroy(REF, null, anOrder)).rejects.toThrow(WORDS);
  expect(sent).toEqual([]);
});

it('with nothing of it they are not of Berth, and what a move has copied so far is no volume yet', async () => {
  const foreign = aDaemon({ 'user.theirs': 'x' });
  expect(await foreign.machines.get(REF)).toMatchObject({ answer: 'gone' });
  expect(await foreign.volumes.get(REF)).toEqual({ answer: 'gone' });
  expect(await aDaemon({ [mark.copyOf]: REF }).volumes.get(REF)).toEqual({ answer: 'gone' });
  expect(await aDaemon(whole).volumes.get(REF)).toMatchObject({ answer: 'observed' });
});

it('an instance that its member cannot show, which comes without any configuration, is unknown', async () => {
  const reason = `Incus shows ${REF} in the state Error`;
  expect(await aDaemon({}, 112).machines.get(REF)).toEqual({ answer: 'unknown', reason });
});

it('an instance that Incus does not find and still lists is unknown: its pool or its network may be what is missing', async () => {
  const api = {
    instance: async () => undefined,
    operations: async () => [],
    instanceNames: async () => [REF],
  } as unknown as IncusApi;
  const options = incusConfigSchema.parse({ driver: 'incus' });
  const instances = { read: async () => ({ instances: [], names: [REF], silent: new Set() }) };
  const machines = new Machines({ api, options, instances } as unknown as MachineDeps);
  expect(await machines.get(REF)).toEqual({
    answer: 'unknown',
    reason: `Incus lists ${REF}, but does not find it`,
  });
});
