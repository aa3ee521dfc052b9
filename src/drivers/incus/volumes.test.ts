import { describe, expect, it } from 'vitest';
import { anOrder } from '../../../test/support/rows/orchestrator-rows.ts';
import { aCluster } from './cluster.fixture.ts';
import { mark } from './translate.ts';

const REF = 'berth-vol-a';
const COPY = `${REF}-g1`;
const [ON_M1, ON_M2] = ['berth-inst-1', 'berth-inst-2'];
const DATA = 'what the tenant wrote';
const marks = { [mark.createdBy]: 'berth', [mark.ref]: REF, [mark.note]: 'n' };
const settings = { size: '1024MiB', 'security.shifted': 'true' };
const spec = { ref: REF, datacenter: 'd', sizeGb: 1, type: undefined, note: 'n' };
const copySpec = { ...spec, ref: COPY, note: 'of the copy', host: 'm2' };

/** A volume on m1 with a tenant's data, and a machine on each member. */
async function aVolume() {
  const cluster = await aCluster();
  cluster.machines.set(ON_M1, { location: 'm1', devices: {} });
  cluster.machines.set(ON_M2, { location: 'm2', devices: {} });
  const config = { ...marks, ...settings, 'volatile.idmap.last': '[]' };
  const volume = { name: REF, location: 'm1', config, data: DATA, usedBy: [] };
  cluster.volumes.push(volume);
  const { volumes } = cluster.open();
  const copy = async (cookie: string | null, of = copySpec) => {
    const step = await volumes.copy?.(REF, of, cookie);
    return { step, cookie: step?.outcome === 'pending' ? step.cookie : null };
  };
  /** Runs a copy to its end. */
  const copied = async () => {
    const { cookie } = await copy(null);
    cluster.finishCopies();
    return (await copy(cookie)).step;
  };
  return { ...cluster, cluster, volume, volumes, copy, copied };
}

const unfinished = { outcome: 'failed', code: 'unfinished', sideEffect: 'certain' };

it('reports what a volume takes on its member, and nothing where the pool does not know', async () => {
  const { volumes, volume } = await aVolume();
  expect(await volumes.usage?.()).toEqual({
    answer: 'listed',
    items: [{ ref: REF, usedBytes: DATA.length }],
  });
  Object.assign(volume, { data: null });
  expect(await volumes.usage?.()).toEqual({ answer: 'listed', items: [] });
});

it('a snapshot by an operator is no copy, and holds its volume, unless the setting says otherwise [incus-volume-snapshot]', async () => {
  const { volumes, cluster, volume } = await aVolume();
  cluster.volumes.push({ ...volume, name: `${REF}/mine` });
  expect(await volumes.list()).toMatchObject({ items: [{ ref: REF }], copies: [] });
  const held = await volumes.destroy(REF, null, anOrder);
  expect(held).toMatchObject({ code: 'conflict', detail: expect.stringContaining('mine. Remove these') });
  expect(cluster.log).toEqual([]);
  const { volumes: allowed } = cluster.open({ on_foreign_snapshot: 'delete' });
  expect(await allowed.destroy(REF, null, anOrder)).toMatchObject({ outcome: 'done' });
});

describe('a volume on another member than the machine', () => {
  it('is neither attached nor changed', async () => {
    const { volumes, cluster } = await aVolume();
    const step = await volumes.attach(REF, ON_M2, null);
    expect(step).toMatchObject({ outcome: 'failed', code: 'elsewhere', sideEffect: 'none' });
    expect(cluster.log).toEqual([]);
  });

  it('is copied there under the requested name, and the copy is a volume of Berth once it is complete', async () => {
    const { volumes, cluster, copy } = await aVolume();
    const { cookie } = await copy(null);
    expect(await volumes.get(COPY)).toEqual({ answer: 'gone' });
    expect(await volumes.list()).toMatchObject({
      items: [{ ref: REF, host: 'm1' }],
      leftovers: [{ ref: COPY, host: 'm2' }],
    });
    expect((await copy(cookie)).step).toMatchObject({ outcome: 'pending' });
    cluster.finishCopies();
    const value = {
      ref: COPY,
      host: 'm2',
      sizeGb: 1,
      note: 'of the copy',
      createdAt: Date.parse('2026-11-23T01:00:00Z'),
    };
    expect((await copy(cookie)).step).toMatchObject({ outcome: 'done', value });
    expect((await copy(null)).step).toMatchObject({ outcome: 'done', value });
    expect(cluster.at('m2', COPY)?.config).toMatchObject(settings);
    expect(cluster.at('m2', COPY)?.config).not.toHaveProperty(['volatile.idmap.last']);
    expect(cluster.at('m1', REF)?.data).toBe(DATA);
    expect(cluster.log.filter((one) => one.startsWith('DELETE'))).toEqual([]);
  });

  it('looks unchanged to the guest once the copy is attached', async () => {
    const { volumes, volume, cluster, copied } = await aVolume();
    await volumes.attach(REF, ON_M1, null);
    const before = cluster.machines.get(ON_M1)?.devices ?? {};
    expect(before).toEqual({ [REF]: { type: 'disk', pool: 'default', source: REF, path: `/mnt/${REF}` } });
    await volumes.detach(REF, ON_M1, null);
    expect(volume.usedBy).toEqual([]);
    await copied();
    await volumes.attach(COPY, ON_M2, null);
    expect(cluster.machines.get(ON_M2)?.devices).toEqual({ [REF]: { ...before[REF], source: COPY } });
    expect(await volumes.get(COPY)).toMatchObject({ value: { attachedTo: [ON_M2] } });
    await volumes.detach(COPY, ON_M2, null);
    expect(cluster.machines.get(ON_M2)?.devices).toEqual({});
  });
});

describe('a copy', () => {
  it('is unfinished after an interruption, and removed only by an order: the next one has another name', async () => {
    const { volumes, cluster, copy } = await aVolume();
    const { cookie } = await copy(null);
    // The daemon was restarted, so its operations are lost.
    cluster.forgetOperations();
    for (const again of [cookie, null]) expect((await copy(again)).step).toMatchObject(unfinished);
    expect(await volumes.create({ ...spec, ref: COPY }, null)).toMatchObject(unfinished);
    expect(cluster.volumes).toHaveLength(2);
    expect((await copy(null, { ...copySpec, ref: `${REF}-g2` })).step).toMatchObject({ outcome: 'pending' });
    await volumes.destroy(COPY, null, anOrder);
    expect(cluster.volumes.map(({ name }) => name)).toEqual([REF, `${REF}-g2`]);
  });

  it.each([
    ['another size', { size: '512MiB' }],
    ['another original', { [mark.copyOf]: 'berth-vol-b' }],
  ])('is not complete if it has %s', async (_what, config) => {
    const { cluster, copy } = await aVolume();
    const { cookie } = await copy(null);
    cluster.finishCopies();
    Object.assign(cluster.at('m2', COPY)?.config ?? {}, config);
    expect((await copy(cookie)).step).toMatchObject(unfinished);
    expect(cluster.at('m2', COPY)?.config[mark.createdBy]).toBeUndefined();
  });

  it('is unfinished once the original was attached again or grown', async () => {
    const { volumes, cluster, copy, copied } = await aVolume();
    await copied();
    await volumes.attach(REF, ON_M1, null);
    expect((await copy(null)).step).toMatchObject(unfinished);
    await volumes.detach(REF, ON_M1, null);
    expect((await copy(null)).step).toMatchObject(unfinished);
    const second = await aVolume();
    await second.copied();
    await second.volumes.resize(REF, 2, null);
    expect((await second.copy(null)).step).toMatchObject(unfinished);
    expect(cluster.volumes).toHaveLength(2);
  });

  it('is not started while a machine writes to the original', async () => {
    const { volumes, copy } = await aVolume();
    await volumes.attach(REF, ON_M1, null);
    expect((await copy(null)).step).toMatchObject({
      outcome: 'failed',
      code: 'conflict',
      sideEffect: 'none',
    });
  });

  it('never adopts a volume that is not its copy', async () => {
    const { cluster, copy } = await aVolume();
    const config = { ...marks, [mark.ref]: COPY, ...settings };
    cluster.volumes.push({ name: COPY, location: 'm2', config, data: null, usedBy: [] });
    expect((await copy(null)).step).toMatchObject({ outcome: 'failed', code: 'already_exists' });
  });

  it('made by hand is reported, and stays when the volume is removed', async () => {
    const { volumes, volume, cluster } = await aVolume();
    cluster.volumes.push({ ...volume, name: 'backup', config: { ...volume.config } });
    const copies = [{ ref: REF, name: 'backup', host: 'm1' }];
    expect(await volumes.list()).toMatchObject({ items: [{ ref: REF }], copies });
    expect(await volumes.destroy(REF, null, anOrder)).toMatchObject({ outcome: 'done' });
    expect(cluster.volumes.map(({ name }) => name)).toEqual(['backup']);
  });
});

it('of two volumes of one name on different members the one in use counts, and the other is reported as a copy', async () => {
  const { volumes, cluster } = await aVolume();
  await volumes.attach(REF, ON_M1, null);
  cluster.volumes.unshift({ name: REF, location: 'm2', config: marks, data: null, usedBy: [] });
  expect(await volumes.get(REF)).toMatchObject({ value: { ref: REF, host: 'm1' } });
  expect(await volumes.list()).toMatchObject({ items: [{ host: 'm1' }], copies: [{ ref: REF, host: 'm2' }] });
});

describe('a volume can be placed', () => {
  it('on each member with room, the one with the most room first, with the resources it has counted', async () => {
    const { volumes } = await aVolume();
    const [first, second] = [
      { host: 'm1', counted: [REF] },
      { host: 'm2', counted: [REF] },
    ];
    expect(await volumes.place?.(spec, [])).toMatchObject({ answer: 'placed', hosts: [first, second] });
    expect(await volumes.place?.(spec, ['m1'])).toMatchObject({ answer: 'placed', hosts: [{ host: 'm2' }] });
    expect(await volumes.place?.({ ...spec, host: 'm2' }, [])).toMatchObject({ hosts: [{ host: 'm2' }] });
    expect(await volumes.place?.({ ...spec, sizeGb: 2 ** 20 }, [])).toMatchObject({
      answer: 'refused',
      code: 'capacity',
    });
  });
});
