import { expect, it } from 'vitest';
import { anOrder } from '../../../test/support/rows/orchestrator-rows.ts';
import type { MachineSpec } from '../../orchestrator/model/platform-driver.ts';
import { DEFAULT_CALL_MS } from '../../work/lease-time.ts';
import { MemoryHost } from './memory-host.fixture.ts';
import { openMemoryPlatform } from './platform.fixture.ts';

function aFleet(options: object = {}) {
  const hosts = [new MemoryHost(), new MemoryHost({ name: 'kvm-2', public_ip: '192.0.2.2' })] as const;
  const { bench } = openMemoryPlatform(hosts, undefined, options);
  const { driver } = bench;
  const place = (more: Partial<MachineSpec> = {}, avoid: readonly string[] = []) =>
    driver.place?.(bench.spec('berth-new', more), avoid);
  const { volumes } = driver;
  if (volumes === undefined) throw new Error('it has no volumes');
  const volumeSpec = (host?: string) => ({
    ...bench.context.volumeSpec('berth-v'),
    ...(host !== undefined && { host }),
  });
  return { hosts, bench, driver, place, volumes, volumeSpec };
}

it.each([
  ['spread', ['kvm-2', 'kvm-1']],
  ['pack', ['kvm-1', 'kvm-2']],
])(
  'hosts with room are listed in the order of the policy %s, each with its units and the counted machines',
  async (placement, order) => {
    const { bench, place } = aFleet({ placement });
    const before = await place();
    expect(before).toMatchObject({ answer: 'placed', hosts: [{ units: 7 }, { units: 7 }] });
    await bench.create('berth-a', { host: 'kvm-1' });
    await bench.create('berth-b', { host: 'kvm-1' });
    await bench.stop('berth-b');
    const answer = await place();
    if (answer?.answer !== 'placed') throw new Error(JSON.stringify(answer));
    expect(answer.hosts.map(({ host }) => host)).toEqual(order);
    // A stopped machine that released its resources is not counted.
    expect(answer.hosts.find(({ host }) => host === 'kvm-1')).toEqual({
      host: 'kvm-1',
      units: 6,
      counted: ['berth-a'],
    });
  },
);

it('a create runs on the chosen host or fails', async () => {
  const { hosts, bench, driver } = aFleet();
  expect(await bench.create('berth-a', { host: 'kvm-2' })).toMatchObject({ host: 'kvm-2' });
  const refusal = { outcome: 'failed', code: 'capacity', sideEffect: 'none' };
  expect(await driver.create(bench.spec('berth-b', { host: 'kvm-1', vcpus: 500 }), null)).toMatchObject(
    refusal,
  );
  expect(await driver.create(bench.spec('berth-b', { host: 'kvm-3' }), null)).toMatchObject(refusal);
  hosts[0].files.delete('debian.qcow2');
  expect(await driver.create(bench.spec('berth-b', { host: 'kvm-1' }), null)).toMatchObject({
    ...refusal,
    code: 'image_missing',
  });
  hosts[0].isAway = true;
  expect(await driver.create(bench.spec('berth-b', { host: 'kvm-1' }), null)).toMatchObject({
    code: 'transient',
  });
  expect(await bench.create('berth-b', { host: 'kvm-2' })).toMatchObject({ host: 'kvm-2' });
  expect(hosts[0].domains.size).toBe(0);
});

it('a host that never answers does not delay placements and creates on others for long', async () => {
  const { hosts, driver, bench, place, volumes, volumeSpec } = aFleet();
  hosts[1].virsh = () => new Promise(() => {});
  const placing = [place(), volumes.place?.(volumeSpec(), [])];
  await bench.context.wait(DEFAULT_CALL_MS);
  for (const placed of placing)
    expect(await placed).toMatchObject({ answer: 'placed', hosts: [{ host: 'kvm-1' }] });
  expect(await driver.create(bench.spec('berth-a', { host: 'kvm-1' }), null)).toMatchObject({
    outcome: 'pending',
  });
});

it('answers only with the host that a volume binds the machine to', async () => {
  const { hosts, place } = aFleet();
  expect(await place({ host: 'kvm-2' })).toMatchObject({ answer: 'placed', hosts: [{ host: 'kvm-2' }] });
  expect(await place({ host: 'kvm-2' }, ['kvm-2'])).toMatchObject({ answer: 'refused', code: 'capacity' });
  expect(await place({ host: 'kvm-3' })).toMatchObject({ answer: 'refused', code: 'capacity' });
  hosts[1].isAway = true;
  expect(await place({ host: 'kvm-2' })).toMatchObject({ answer: 'unknown' });
});

it('an image is missing only if no host with room has it', async () => {
  const { hosts, place } = aFleet();
  hosts[0].files.delete('debian.qcow2');
  expect(await place()).toMatchObject({ answer: 'placed', hosts: [{ host: 'kvm-2' }] });
  expect(await place({}, ['kvm-2'])).toMatchObject({
    answer: 'refused',
    code: 'image_missing',
    detail: expect.stringContaining('kvm-1: its pool has no debian.qcow2'),
  });
  expect(await place({}, ['kvm-1', 'kvm-2'])).toMatchObject({ answer: 'refused', code: 'capacity' });
  expect(await place({ vcpus: 500 })).toMatchObject({ answer: 'refused', code: 'capacity' });
  expect(await place({ image: 'none' })).toMatchObject({ answer: 'refused', code: 'image_missing' });
  // The host that does not answer may have the image.
  hosts[1].isAway = true;
  expect(await place()).toMatchObject({ answer: 'unknown' });
  hosts[0].isAway = true;
  expect(await place()).toMatchObject({ answer: 'unknown' });
});

it('volumes are placed by the free space of each pool, and made on the chosen host', async () => {
  const { hosts, bench, volumes, volumeSpec } = aFleet();
  await bench.create('berth-a', { host: 'kvm-1' });
  const place = (host?: string, avoid: readonly string[] = []) => volumes.place?.(volumeSpec(host), avoid);
  expect(await place()).toMatchObject({ answer: 'placed', hosts: [{ host: 'kvm-2' }, { host: 'kvm-1' }] });
  expect(await place(undefined, ['kvm-2'])).toMatchObject({ hosts: [{ host: 'kvm-1' }] });
  expect(await place('kvm-1')).toMatchObject({ hosts: [{ host: 'kvm-1', counted: [] }] });
  expect(await place('kvm-1', ['kvm-1'])).toMatchObject({ answer: 'refused', code: 'capacity' });
  const made = await volumes.create(volumeSpec('kvm-1'), null);
  expect(made).toMatchObject({ outcome: 'done', value: { host: 'kvm-1' } });
  expect(await place('kvm-1')).toMatchObject({ hosts: [{ counted: ['berth-v'] }] });
  expect([...hosts[1].files.keys()]).toEqual(['debian.qcow2']);
  await bench.create('berth-b', { host: 'kvm-2' });
  expect(await volumes.attach('berth-v', 'berth-b', null)).toMatchObject({
    outcome: 'failed',
    code: 'elsewhere',
    sideEffect: 'none',
  });
});

it('volume observations name the hosts that do not answer, and a delete waits only for its own host', async () => {
  const { hosts, volumes, volumeSpec } = aFleet();
  await volumes.create(volumeSpec('kvm-1'), null);
  const asked = (answered: string, silent: string) => ({ answered: [answered], silent: [silent] });
  hosts[1].isAway = true;
  expect(await volumes.list()).toMatchObject({
    answer: 'listed',
    items: [{ ref: 'berth-v', host: 'kvm-1' }],
    hosts: asked('kvm-1', 'kvm-2'),
  });
  expect(await volumes.destroy('berth-v', null, anOrder)).toMatchObject({ outcome: 'done' });
  expect([...hosts[0].files.keys()]).toEqual(['debian.qcow2']);
  expect(await volumes.get('berth-v')).toMatchObject({ answer: 'unknown', hosts: asked('kvm-1', 'kvm-2') });
  const silent = { outcome: 'failed', code: 'transient', sideEffect: 'possible' };
  expect(await volumes.destroy('berth-v', null, anOrder)).toMatchObject(silent);
  hosts[1].isAway = false;
  expect(await volumes.destroy('berth-v', null, anOrder)).toMatchObject({ outcome: 'done' });
  expect(await volumes.get('berth-v')).toMatchObject({
    answer: 'gone',
    hosts: { answered: ['kvm-1', 'kvm-2'], silent: [] },
  });
});

it('a mark without a disk is a leftover only when no create can be working on it', async () => {
  const { hosts, volumes, volumeSpec, bench } = aFleet();
  await volumes.create(volumeSpec('kvm-1'), null);
  hosts[0].files.delete('berth-v.volume');
  expect(await volumes.get('berth-v')).toMatchObject({ answer: 'gone' });
  const leftovers = async () => {
    const listing = await volumes.list();
    return listing.answer === 'listed' ? listing.leftovers : undefined;
  };
  expect(await leftovers()).toEqual([]);
  await bench.context.wait(61 * 60_000);
  expect(await leftovers()).toEqual([{ ref: 'berth-v', host: 'kvm-1', detail: 'berth-v.mark' }]);
});

it('a volume that a domain of an operator uses as a disk is not deleted', async () => {
  const { hosts, volumes, volumeSpec } = aFleet();
  await volumes.create(volumeSpec('kvm-1'), null);
  const disk = `<disk type="file"><source file="/images/berth-v.volume"/><target dev="vdb"/></disk>`;
  const uuid = '4b2f7f5e-7b11-4d5c-9f0a-2f6f0a3b6f10';
  hosts[0].define(`<domain><name>rescue</name><uuid>${uuid}</uuid><devices>${disk}</devices></domain>`);
  expect(await volumes.destroy('berth-v', null, anOrder)).toMatchObject({
    outcome: 'failed',
    code: 'conflict',
    detail: expect.stringContaining('rescue'),
  });
  expect(hosts[0].files.has('berth-v.volume')).toBe(true);
});
