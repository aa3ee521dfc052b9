import { expect, it } from 'vitest';
import { Scheduler } from '../../../test/support/time/scheduler.ts';
import { ServerProcess } from '../../kernel/process.ts';
import {
  callsAreSerial,
  diskIsKept,
  nothingMadeForTheDead,
  rowComesFirst,
  servesItsOwnPlatform,
  singleStaysSingle,
} from './platform.ts';
import { aCall, aRecord } from './samples.fixture.ts';

const REF = 'berth-inst-1';

it('I2: a machine that no row owns', () => {
  expect(() => rowComesFirst(REF, undefined)).toThrow('I2');
  rowComesFirst(REF, aRecord());
});

it('I12: a machine for what is DESTROYED', () => {
  expect(() => nothingMadeForTheDead(REF, aRecord({ status: 'DESTROYED' }))).toThrow('I12');
  nothingMadeForTheDead(REF, aRecord({ status: 'DESTROYING' }));
});

it('I14: a second, empty disk', () => {
  expect(() => diskIsKept(REF, { wasOnline: true, isLost: false })).toThrow('I14');
  diskIsKept(REF, { wasOnline: false, isLost: false });
  diskIsKept(REF, { wasOnline: true, isLost: true });
});

it('I3: a server of another platform', () => {
  expect(() => servesItsOwnPlatform('r1', true)).toThrow('I3');
  servesItsOwnPlatform('r1', false);
});

it('I15: a volume that cannot be shared on two machines', () => {
  expect(() => singleStaysSingle('berth-vol-1', 'single', ['a', 'b'])).toThrow('I15');
  singleStaysSingle('berth-vol-1', 'shared', ['a', 'b']);
  singleStaysSingle('berth-vol-1', 'single', ['a']);
});

it('I25: two calls that change one instance at once', () => {
  const [first, second] = [aCall(), aCall({ method: 'destroy', sentAt: 4_000 })];
  expect(() => callsAreSerial(second, [first], 10_000)).toThrow('I25');
  callsAreSerial(second, [{ ...first, answeredAt: 3_000 }], 10_000);
  callsAreSerial({ ...second, sentAt: 10_000 }, [first], 10_000);
  callsAreSerial({ ...second, method: 'get' }, [first], 10_000);
  const dead = new ServerProcess('r2.1', new Scheduler(0));
  dead.kill();
  callsAreSerial(second, [{ ...first, process: dead }], 10_000);
});
