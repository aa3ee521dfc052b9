import { expect, it } from 'vitest';
import { recordedOrder } from '../../../src/orchestrator/model/destroy-order.ts';
import { tenantTexts } from '../../../src/orchestrator/model/failure.ts';
import type { InstanceRecord } from '../../../src/orchestrator/model/records.ts';
import {
  destroyedIsProved,
  endIsTrue,
  errorSaysWhy,
  followsTheTable,
  onlineIsEarned,
  type Truth,
  timeGoesOn,
} from './rows.ts';
import { aMachine, aRecord } from './samples.fixture.ts';

const before = aRecord({ status: 'PROVISIONING' });
const next = (changes: Partial<InstanceRecord>): InstanceRecord =>
  aRecord({ version: 2, updatedAt: 2_000, ...changes });

it('I5: refuses what the table has no edge for, and two steps in one commit are fine', () => {
  const online = aRecord({ status: 'ONLINE' });
  expect(() => followsTheTable({ before: online, after: next({ status: 'PROVISIONING' }) })).toThrow('I5');
  expect(() => followsTheTable({ before: undefined, after: online })).toThrow('I5');
  followsTheTable({ before: online, after: next({ status: 'DESTROYED' }) });
  followsTheTable({ before: undefined, after: before });
});

it('I6: requires a recent proof of each key at the reported address', () => {
  const after = next({ status: 'ONLINE' });
  const proof = { at: 1_000, host: '203.0.113.1', keys: after.spec.sshKeys };
  const time = { now: 5_000, withinMs: 10_000 };
  const check = (changes: Partial<typeof proof>): void =>
    onlineIsEarned({ before, after }, { ...proof, ...changes }, time);
  check({});
  expect(() => onlineIsEarned({ before, after }, undefined, time)).toThrow('never reached');
  expect(() => check({ at: -20_000 })).toThrow('old');
  expect(() => check({ host: '203.0.113.2' })).toThrow('reached at');
  expect(() => check({ keys: [] })).toThrow('each key');
});

it('I7: ERROR without a text of ours', () => {
  expect(() => errorSaysWhy({ before, after: next({ status: 'ERROR', error: null }) })).toThrow('I7');
  const failed = next({ status: 'ERROR', error: 'capacity: node-7 is full' });
  expect(() => errorSaysWhy({ before, after: failed })).toThrow('I7');
  errorSaysWhy({ before, after: next({ status: 'ERROR', error: tenantTexts.capacity }) });
});

it.each([
  ['updated before it was created', next({ updatedAt: 10 })],
  ['version', next({ version: 1 })],
  ['went back', next({ updatedAt: 1_500 })],
  ['nothing else', next({ updatedAt: 3_000 })],
])('I16: %s', (message, after) => {
  expect(() => timeGoesOn({ before: aRecord({ updatedAt: 1_800 }), after })).toThrow(message);
});

it('I16: what is seen moves updated_at', () => {
  timeGoesOn({ before, after: next({ status: 'ONLINE' }) });
  timeGoesOn({ before, after: next({ updatedAt: before.updatedAt, attachCycle: true }) });
});

const truth: Truth = { machines: [], hasSuffered: true, isDeleteSent: false, isEarly: true };

it.each([
  ['STOPPED', { status: 'OFFLINE' }],
  ['ONLINE', { status: 'ERROR', error: tenantTexts.machine_gone }],
  ['ONLINE', { status: 'DESTROYING' }],
  ['PROVISIONING', { status: 'ERROR', error: tenantTexts.machine_gone }],
] as const)('I3: no end of what is %s by a lie', (status, changes) => {
  const written = { before: aRecord({ status }), after: next(changes) };
  endIsTrue(written, truth);
  expect(() => endIsTrue(written, { ...truth, machines: [aMachine({})] })).toThrow('its machine is there');
  endIsTrue(written, { ...truth, machines: [aMachine({ power: 'destroying' })] });
});

it('I3: no end of a live instance for a loss that never was', () => {
  const written = { before: aRecord({ status: 'STOPPED' }), after: next({ status: 'OFFLINE' }) };
  expect(() => endIsTrue(written, { ...truth, hasSuffered: false })).toThrow('never was');
});

it('I3: its tenant may end it whatever the machine is', () => {
  const written = { before: aRecord({ status: 'ONLINE' }), after: next({ status: 'DESTROYING' }) };
  endIsTrue(written, { ...truth, isDeleteSent: true, machines: [aMachine({})] });
});

it('I12: DESTROYED with a machine', () => {
  const written = { before: aRecord({ status: 'DESTROYING' }), after: next({ status: 'DESTROYED' }) };
  expect(() => destroyedIsProved(written, [aMachine({})])).toThrow('I12');
  destroyedIsProved(written, []);
  const destroyOrder = recordedOrder({ reason: 'tenant', by: 'acct-a', at: 1_000, keepsDisks: true });
  const kept = { ...written, after: next({ status: 'DESTROYED', destroyOrder }) };
  destroyedIsProved(kept, [aMachine({ power: 'stopped' })]);
  expect(() => destroyedIsProved(kept, [aMachine({})])).toThrow('I12');
});
