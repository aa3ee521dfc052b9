import { expect, it } from 'vitest';
import { recordedOrder } from '../../../src/orchestrator/model/destroy-order.ts';
import { nothingIsLeft } from '../../kernel/violation.ts';
import {
  attachmentsMatch,
  claimsMatchRows,
  createsAreCounted,
  everyIntentEnds,
  growthIsClaimed,
  noStorageIsOversold,
  rowsMatchMachines,
  sizeIsTrue,
  storageClaimsMatch,
  volumesAreThere,
} from './quiescence.ts';
import { aMachine, aRecord, aVolume } from './samples.fixture.ts';

const anOrder = recordedOrder({ reason: 'tenant', by: 'acct-a', at: 1_000 });

it('I1: more storage than a location has', () => {
  const use = [{ region: 'eu-north', claimedGb: 100 }];
  expect(() => noStorageIsOversold(use, () => 99)).toThrow('I1');
  noStorageIsOversold(use, () => 100);
  noStorageIsOversold(use, () => undefined);
});

it('I4: a volume that claims another size than it has, or something after it is gone', () => {
  const volume = aVolume({ sizeGb: 20, deletedAt: null, status: 'AVAILABLE' });
  expect(() => storageClaimsMatch(volume, 0)).toThrow('I4');
  expect(() => storageClaimsMatch({ ...volume, deletedAt: 1 }, 20)).toThrow('I4');
  expect(() => storageClaimsMatch({ ...volume, status: 'ERROR' }, 20)).toThrow('I4');
  storageClaimsMatch(volume, 20);
  storageClaimsMatch({ ...volume, deletedAt: 1 }, 0);
});

it('I4, I15: a volume that is larger than what it claims, or not of the reported size', () => {
  expect(() => growthIsClaimed(aVolume(), 40, 20)).toThrow('I4');
  growthIsClaimed(aVolume(), 20, 40);
  const volume = aVolume({ sizeGb: 40, status: 'AVAILABLE' });
  expect(() => sizeIsTrue(volume, 20)).toThrow('I15');
  sizeIsTrue(volume, 40);
  sizeIsTrue({ ...volume, status: 'ERROR' }, 20);
});

it('I24: what never ends', () => {
  expect(() => everyIntentEnds([aRecord({ status: 'STOPPING' })], [], 0)).toThrow('stays STOPPING');
  expect(() => everyIntentEnds([], [aVolume({ status: 'DELETING' })], 0)).toThrow('stays DELETING');
  expect(() => everyIntentEnds([], [], 1)).toThrow('1 rows of work');
  everyIntentEnds([aRecord()], [aVolume({ status: 'DELETING', deletedAt: 1 }), aVolume()], 0);
});

it.each([
  ['a machine without a live row', [aRecord({ status: 'ERROR', destroyOrder: anOrder })], [aMachine()]],
  ['a machine of what has ended', [aRecord({ status: 'DESTROYED' })], [aMachine()]],
  ['a machine without a row', [], [aMachine()]],
  ['a row without a machine', [aRecord()], []],
  ['ONLINE and stopped', [aRecord()], [aMachine({ power: 'stopped' })]],
  ['STOPPED and running', [aRecord({ status: 'STOPPED' })], [aMachine()]],
  ['another address', [aRecord()], [aMachine({ ip: '203.0.113.9' })]],
])('I3: %s', (_, rows, machines) => {
  expect(() => rowsMatchMachines(rows, machines)).toThrow('I3');
});

it('I3: a row and its machine', () => rowsMatchMachines([aRecord()], [aMachine()]));

it('I3, I4: what ended without a request keeps its machine and its unit until one comes', () => {
  const record = aRecord({ status: 'ERROR' });
  rowsMatchMachines([record], [aMachine()]);
  const refs = new Set([record.ownerRef]);
  claimsMatchRows([record], new Map([[record.id, true]]), refs);
  expect(() => claimsMatchRows([record], new Map([[record.id, false]]), refs)).toThrow('I4');
});

it.each([
  ['ONLINE', false],
  ['STOPPED', true],
  ['DESTROYED', true],
  ['ERROR', true],
] as const)('I4: %s with a unit: %s', (status, holds) => {
  const record = aRecord({ status });
  expect(() => claimsMatchRows([record], new Map([[record.id, holds]]), new Set())).toThrow('I4');
  claimsMatchRows([record], new Map([[record.id, !holds]]), new Set());
});

it('I9, I10, I13: creates that came to too many rows, or too few', () => {
  const sent = { name: 'alpha-i1', outcome: 'created', isRetried: false, isForgotten: false } as const;
  expect(() => createsAreCounted([{ ...sent, isRetried: true }], () => 2)).toThrow('I10');
  expect(() => createsAreCounted([{ ...sent, outcome: 'refused' }], () => 1)).toThrow('I13');
  expect(() => createsAreCounted([sent], () => 0)).toThrow('I9');
  createsAreCounted([sent, { ...sent, outcome: 'unknown' }], () => 1);
  createsAreCounted([{ ...sent, outcome: 'unknown' }], () => 0);
  createsAreCounted([{ ...sent, isForgotten: true }], () => 2);
});

it('I15: attachments that are reported and do not exist, and the other way', () => {
  const attached = { volumeId: 'vol-1', instanceId: 'inst-1', state: 'attached' } as const;
  expect(() => attachmentsMatch(aVolume(), [attached], [])).toThrow('is at nothing');
  expect(() => attachmentsMatch(aVolume(), [], ['berth-inst-1'])).toThrow('told at nothing');
  const open = { ...attached, state: 'detaching' } as const;
  expect(() => attachmentsMatch(aVolume(), [open], ['berth-inst-1'])).toThrow('stays detaching');
  attachmentsMatch(aVolume(), [attached], ['berth-inst-1']);
});

it('I15: a volume that is lost, one that is left', () => {
  expect(() => volumesAreThere([aVolume()], new Set())).toThrow('does not exist');
  expect(() => volumesAreThere([aVolume({ deletedAt: 1 })], new Set(['berth-vol-1']))).toThrow('exists');
  volumesAreThere([aVolume()], new Set(['berth-vol-1']));
});

it('I28: timers and subscriptions that are left', () => {
  expect(() => nothingIsLeft({ timers: 1, subscriptions: 0 })).toThrow('I28');
  expect(() => nothingIsLeft({ timers: 0, subscriptions: 1 })).toThrow('I28');
  nothingIsLeft({ timers: 0, subscriptions: 0 });
});
