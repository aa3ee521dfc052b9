import { expect, it } from 'vitest';
import { type DestroyReason, recordedOrder } from '../../../src/orchestrator/model/destroy-order.ts';
import type { InstanceRecord } from '../../../src/orchestrator/model/records.ts';
import { endHasAnOrder, orderNamesARequest, removalHasAnOrder, volumeEndHasAnOrder } from './orders.ts';
import { aRecord, aVolume } from './samples.fixture.ts';

const order = (reason: DestroyReason, more: { keepsDisks?: true } = {}) =>
  recordedOrder({ reason, by: 'acct-a', at: 1_500, ...more });
const destroying = (changes: Partial<InstanceRecord> = {}): InstanceRecord =>
  aRecord({ status: 'DESTROYING', destroyOrder: order('tenant'), ...changes });
const noRequests = { isDeleteSent: false, isPolicySet: false };

it('I36: an end that was not requested, of an instance or a volume', () => {
  expect(() => endHasAnOrder(aRecord({ status: 'DESTROYED' }))).toThrow('I36');
  endHasAnOrder(destroying());
  endHasAnOrder(aRecord({ status: 'ERROR' }));
  const { spec } = aRecord();
  endHasAnOrder(aRecord({ status: 'DESTROYED', spec: { ...spec, instanceType: 'SPOT' } }));
  expect(() => volumeEndHasAnOrder(aVolume({ deletedAt: 2_000 }))).toThrow('I36');
  volumeEndHasAnOrder(aVolume());
});

it('I36: an order that is changed or taken back', () => {
  const [before, after] = [destroying(), destroying({ destroyOrder: order('operator') })];
  expect(() => orderNamesARequest({ before, after }, noRequests)).toThrow('another one');
  const without = destroying({ destroyOrder: null });
  expect(() => orderNamesARequest({ before, after: without }, noRequests)).toThrow('another one');
  orderNamesARequest({ before, after: before }, noRequests);
});

it.each([
  ['tenant', 'ONLINE', { isDeleteSent: true }],
  ['operator', 'DESTROYING', { isOrderedByOperator: true }],
  ['failed_create', 'PROVISIONING', {}],
  ['policy', 'ERROR', { isPolicySet: true }],
] as const)('I36: an order by %s without such a request', (reason, status, there) => {
  const after = destroying({ destroyOrder: order(reason) });
  const written = { before: aRecord({ status }), after };
  orderNamesARequest(written, { ...noRequests, ...there });
  const other = { before: aRecord({ status: 'STOPPED' }), after };
  expect(() => orderNamesARequest(other, noRequests)).toThrow('nobody asked');
});

it('I36: a DELETE of what ended by itself that removes its disks at once', () => {
  const written = { before: aRecord({ status: 'ERROR' }), after: destroying() };
  const requests = { ...noRequests, isDeleteSent: true };
  expect(() => orderNamesARequest(written, requests)).toThrow('not kept');
  const kept = destroying({ destroyOrder: order('tenant', { keepsDisks: true }) });
  orderNamesARequest({ ...written, after: kept }, requests);
});

it.each(['ONLINE', 'STOPPED', 'ERROR', 'OFFLINE'] as const)(
  'I36: the machine of what is %s is removed without an order',
  (status) => {
    expect(() => removalHasAnOrder('berth-inst-1', aRecord({ status }))).toThrow('I36');
    removalHasAnOrder('berth-inst-1', destroying());
    removalHasAnOrder('berth-inst-1', undefined);
  },
);
