import { beforeEach, expect, it } from 'vitest';
import { account, dueWork, instance } from '../../../../test/support/rows/orchestrator-rows.ts';
import { openTestStore } from '../../../../test/support/rows/stores.ts';
import { recordedOrder } from '../../model/destroy-order.ts';
import type { Listing, ObservedMachine } from '../../model/platform-driver.ts';
import type { Store } from '../../model/store.ts';
import { findDrift } from './drift.ts';

const NOW = Date.UTC(2030, 0, 2);
const OLD = NOW - 3_600_000;
const endpoint = { publicIp: '203.0.113.7', sshPort: 22, sshUsername: 'ubuntu' };

let store: Store;
beforeEach(async () => {
  store = await openTestStore();
  await store.transact(async (tx) => {
    await tx.installation.put({ id: 'here', platform: '{}' });
    await tx.credentials.insertAccount(account);
    const put = (id: string, changes: object) =>
      tx.instances.insert(instance(id, { endpoint, updatedAt: OLD, ownerRef: `berth-${id}`, ...changes }));
    await put('fine', { status: 'ONLINE' });
    await put('lost', { status: 'ONLINE' });
    await put('off', { status: 'ONLINE' });
    await put('moved', { status: 'ONLINE' });
    await put('on-silent', { status: 'ONLINE', host: 'kvm-2' });
    await put('full', { status: 'ONLINE' });
    await put('cut-off', { status: 'ONLINE' });
    await put('left', { status: 'ERROR' });
    await put('kept', { status: 'ERROR' });
    const order = recordedOrder({ reason: 'tenant', by: account.id, at: OLD, keepsDisks: true });
    await put('disks-kept', { status: 'DESTROYED', destroyOrder: order });
    await put('disks-late', { status: 'DESTROYED', destroyOrder: { ...order, at: OLD - 86_400_000 } });
    await put('new', { status: 'ONLINE', updatedAt: NOW });
    await put('elsewhere', { status: 'ONLINE', platform: 'west' });
    await tx.work.put({ ...dueWork, resourceId: 'full', kind: 'observe', notBefore: NOW + 1 });
    await tx.work.put({ ...dueWork, resourceId: 'kept', kind: 'hold', notBefore: NOW + 1 });
  });
});

const machine = (id: string, changes: Partial<ObservedMachine> = {}): ObservedMachine => ({
  ref: `berth-${id}`,
  power: 'running',
  createdAt: OLD,
  endpoint,
  ...changes,
});
const noteOf = (id: string, installation: string) => JSON.stringify({ installation, id });
const find = async (listing: Listing<ObservedMachine>) => {
  const found = await findDrift(store.read, {
    platform: 'default',
    otherPlatforms: new Set(['west']),
    listing,
    askedAt: NOW,
    keepDisksMs: 86_400_000,
    driver: { manifest: { stop: true } },
  });
  return found.map(({ subject, verdict, finding }) => `${subject} ${verdict}: ${finding}`);
};

it('reports where rows and machines differ, but nothing in progress, on silent hosts or of another installation [doctor-drift]', async () => {
  const items = [
    machine('fine'),
    machine('off', { power: 'stopped' }),
    machine('moved', { endpoint: { ...endpoint, publicIp: '203.0.113.8' } }),
    machine('full', { power: 'paused', detail: 'no space left' }),
    machine('cut-off', { fault: { finding: 'its card is on no bridge', remedy: 'put it back' } }),
    machine('left'),
    machine('kept'),
    machine('row-lost', { note: noteOf('row-lost', 'here') }),
    machine('foreign', { note: noteOf('foreign', 'another') }),
    machine('stray'),
    machine('disks-kept', { power: 'stopped' }),
    machine('disks-late', { power: 'stopped' }),
    machine('young', { createdAt: NOW }),
  ];
  expect(
    (await find({ answer: 'listed', items, hosts: { answered: ['kvm-1'], silent: ['kvm-2'] } })).sort(),
  ).toEqual([
    'host kvm-2 warning: it does not answer: its machines cannot be compared',
    'instance cut-off broken: its machine berth-cut-off has a fault: its card is on no bridge',
    'instance full broken: it is ONLINE, and its machine berth-full is paused: no space left',
    'instance left broken: it is ERROR, and its machine berth-left is running: it may be costing money',
    'instance lost broken: it is ONLINE, and the platform does not list its machine berth-lost',
    'instance moved warning: its tenant sees 203.0.113.7:22, but its machine is at 203.0.113.8:22',
    'instance off warning: it is ONLINE, and its machine berth-off is stopped',
    'machine berth-disks-kept ok: it is stopped: after the DELETE of disks-kept, its disks are kept until 2030-01-02T23:00:00.000Z (retention.lost_disks_hours)',
    'machine berth-disks-late broken: it is stopped, and its instance disks-late is DESTROYED: it may be costing money',
    'machine berth-row-lost warning: it is running, and its row was lost',
    "machine berth-stray warning: it is running, it has Berth's tag, but no row",
  ]);
});

it('reports that a platform without a listing cannot be compared', async () => {
  expect(await find({ answer: 'unknown', reason: 'no route' })).toEqual([
    'rows against machines broken: the platform does not list its machines: no route',
  ]);
});
