import { expect, it } from 'vitest';
import { recordedOrder } from '../../../src/orchestrator/model/destroy-order.ts';
import { aRecord } from '../../orchestrator/invariants/samples.fixture.ts';
import type { Disk, Machine } from '../engine.ts';
import { addressesDiffer, machinesDiffer } from './addresses.ts';
import { bytesAreFound, bytesAreKept, copiesOf } from './bytes.ts';
import { removalIsOrdered } from './removals.ts';
import { absenceIsNotTold, isAccountedFor, refusalsAreTold, rowsMatchEngine } from './rest.ts';

const REF = 'berth-inst-1';
const order = recordedOrder({ reason: 'tenant', by: 'acct-a', at: 1_000 });

function aDisk(written: string[] = ['text'], changes: Partial<Disk> = {}): Disk {
  const content = { guest: undefined, written };
  return { host: 'kvm-1', name: `${REF}.qcow2`, ref: REF, content, ...changes };
}

function aMachine(changes: Partial<Machine> = {}): Machine {
  return {
    host: 'kvm-1',
    name: REF,
    identity: 'a',
    ref: REF,
    isCopy: false,
    power: 'running',
    address: { host: '203.0.113.1', port: 22 },
    disk: aDisk(),
    volumes: [],
    ...changes,
  };
}

it('I36: a removal without a request to end', () => {
  const removal = { ref: REF, what: 'the disk', line: 'vol-delete' };
  expect(() => removalIsOrdered(removal, aRecord())).toThrow('nobody asked');
  expect(() => removalIsOrdered(removal, undefined)).toThrow('no row');
  removalIsOrdered(removal, aRecord({ destroyOrder: order }));
  removalIsOrdered(removal, aRecord({ ownerRef: `${REF}-g1` }));
  expect(() => removalIsOrdered({ ...removal, ref: `${REF}-g1` }, aRecord())).toThrow('I36');
  removalIsOrdered({ ...removal, ref: `${REF}-g1`, isGivenUp: true }, aRecord());
});

it('I37: bytes that are in no disk of ours any more, or not in the one that its tenant has', () => {
  const writing = { text: 'text', id: 'inst-1' };
  const elsewhere = aDisk(['text'], { name: 'clone.qcow2', ref: undefined });
  const copy = aMachine({ isCopy: true, disk: elsewhere });
  expect(() => bytesAreKept(writing, copiesOf('inst-1', [elsewhere, aDisk([])], [copy]), 'x')).toThrow('I37');
  bytesAreKept(writing, copiesOf('inst-1', [aDisk()], []), 'x');
  bytesAreKept(writing, copiesOf('inst-1', [], [aMachine({ name: 'renamed', disk: elsewhere })]), 'x');
  expect(() => bytesAreFound(writing, aDisk([]))).toThrow('without what was written');
  expect(() => bytesAreFound(writing, undefined)).toThrow('no disk');
  bytesAreFound(writing, aDisk());
});

it('I39: a resource without a row and without an alarm, or one that reads 404', () => {
  expect(() => isAccountedFor({ id: 'inst-1', status: 404, isAlarmed: false })).toThrow('I39');
  isAccountedFor({ id: 'inst-1', status: 503, isAlarmed: false });
  isAccountedFor({ id: 'inst-1', status: 404, isAlarmed: true });
  expect(() => absenceIsNotTold('inst-1', ['a disk'])).toThrow('I39');
  absenceIsNotTold('inst-1', []);
});

it('I41: one address of two live instances, or of two machines', () => {
  const [one, other] = [aRecord(), aRecord({ id: 'inst-2' })];
  expect(() => addressesDiffer([one, other], () => false)).toThrow('I41');
  addressesDiffer([one, other], (id) => id === 'inst-2');
  addressesDiffer([one, { ...other, status: 'STOPPED' }], () => false);
  const second = aMachine({ identity: 'b', ref: 'berth-inst-2' });
  expect(() => machinesDiffer(second, [aMachine(), second], () => false)).toThrow('I41');
  machinesDiffer(second, [aMachine({ address: undefined }), second], () => false);
  machinesDiffer(second, [aMachine(), second], ({ ref }) => ref === REF);
});

it('I3: a row without its machine, with two, in another state, or at another address', () => {
  const address = { host: '203.0.113.1', port: 22 };
  rowsMatchEngine([aRecord()], [aMachine({ address })]);
  expect(() => rowsMatchEngine([aRecord()], [])).toThrow('0 machines');
  expect(() => rowsMatchEngine([aRecord()], [aMachine(), aMachine()])).toThrow('2 machines');
  expect(() => rowsMatchEngine([aRecord()], [aMachine({ power: 'stopped' })])).toThrow('stopped');
  const elsewhere = aMachine({ address: { ...address, port: 23 } });
  expect(() => rowsMatchEngine([aRecord()], [elsewhere])).toThrow('its machine has');
});

it('I44: a removal that is refused in silence', () => {
  expect(() => refusalsAreTold([aRecord()], [])).toThrow('I44');
  refusalsAreTold([aRecord()], [{ subject: aRecord().id }]);
});
