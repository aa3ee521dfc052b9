import { expect, it } from 'vitest';
import { aRecord } from '../../orchestrator/invariants/samples.fixture.ts';
import type { Machine } from '../engine.ts';
import { addressesDiffer } from './addresses.ts';
import { bytesAreFound } from './bytes.ts';
import { isAccountedFor, rowsMatchEngine } from './rest.ts';

const machine: Machine = {
  host: 'kvm-1',
  name: 'berth-inst-1',
  identity: 'a',
  ref: 'berth-inst-1',
  isCopy: false,
  power: 'running',
  address: { host: '203.0.113.1', port: 22 },
  disk: undefined,
  volumes: [],
};

it('I3: a row without its machine, with two, in another state, or at another address', () => {
  rowsMatchEngine([aRecord()], [machine]);
  expect(() => rowsMatchEngine([aRecord()], [])).toThrow('0 machines');
  expect(() => rowsMatchEngine([aRecord()], [machine, machine])).toThrow('2 machines');
  expect(() => rowsMatchEngine([aRecord()], [{ ...machine, power: 'stopped' }])).toThrow('stopped');
  const elsewhere = { host: '203.0.113.1', port: 23 };
  expect(() => rowsMatchEngine([aRecord()], [{ ...machine, address: elsewhere }])).toThrow('its machine has');
});

it('I37: bytes that are not in the disk that its tenant has', () => {
  const writing = { text: 'text', id: 'inst-1' };
  const disk = (written: string[]) => ({
    host: 'kvm-1',
    name: 'a.qcow2',
    ref: 'berth-inst-1',
    content: { guest: undefined, written },
  });
  expect(() => bytesAreFound(writing, disk([]))).toThrow('without what was written');
  expect(() => bytesAreFound(writing, undefined)).toThrow('no disk');
  bytesAreFound(writing, disk(['text']));
});

it('I39: a resource without a row and without an alarm', () => {
  expect(() => isAccountedFor({ id: 'inst-1', status: 404, isAlarmed: false })).toThrow('I39');
  isAccountedFor({ id: 'inst-1', status: 503, isAlarmed: false });
  isAccountedFor({ id: 'inst-1', status: 404, isAlarmed: true });
});

it('I41: one address of two live instances', () => {
  const [one, other] = [aRecord(), aRecord({ id: 'inst-2' })];
  expect(() => addressesDiffer([one, other], () => false)).toThrow('I41');
  addressesDiffer([one, other], (id) => id === 'inst-2');
  addressesDiffer([one, { ...other, status: 'STOPPED' }], () => false);
});
