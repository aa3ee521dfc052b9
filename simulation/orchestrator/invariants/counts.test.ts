import { expect, it } from 'vitest';
import { Scheduler } from '../../../test/support/time/scheduler.ts';
import { ServerProcess } from '../../kernel/process.ts';
import { Counts, isSoldByCount } from './counts.ts';
import { aMachine } from './samples.fixture.ts';

const MINUTE_MS = 60_000;
const place = { offerId: 'cpu', region: 'eu-north' };
const free = (units: number) => [{ offerId: 'cpu', datacenter: 'dc-north-1', units }];

function counted() {
  const process = new ServerProcess('r1.1', new Scheduler(0));
  const counts = new Counts();
  return {
    process,
    counts,
    add: (at: number, units: number, held = [aMachine()]) =>
      counts.add({ process, askedAt: at, arrivedAt: at + 100 }, free(units), held),
    most: (now: number, isClockTrue = true) =>
      counts.most(process, 'cpu eu-north', { now, callTimeoutMs: 10_000, isClockTrue }),
  };
}

it('I33: at rest a free unit that is not offered, and one that is offered and not free', () => {
  expect(() => isSoldByCount(place, 1, [])).toThrow('I33');
  expect(() => isSoldByCount(place, 0, ['eu-north'])).toThrow('I33');
  isSoldByCount(place, 1, ['eu-north']);
  isSoldByCount(place, -1, []);
});

it('goes by the free units and those that machines held, of the last count that was kept', () => {
  const { add, most } = counted();
  expect(most(0)).toBe(0);
  add(1_000, 3);
  expect(most(2_000)).toBe(4);
  add(20_000, 1, []);
  expect([most(21_000), most(31_000)]).toEqual([4, 1]);
});

it('goes by an older count too where the server may not have kept the last one', () => {
  const { counts, process, add, most } = counted();
  add(1_000, 3);
  add(20_000, 0, []);
  counts.storeFailed(process, 20_050);
  expect(most(60_000)).toBe(4);
  counts.add({ process, askedAt: 70_000, arrivedAt: 79_500 }, free(0), []);
  expect(most(2 * MINUTE_MS)).toBe(4);
});

it('goes by no count that is too old, unless clocks were changed', () => {
  const { add, most } = counted();
  add(1_000, 3);
  expect([most(12 * MINUTE_MS), most(12 * MINUTE_MS, false)]).toEqual([0, 4]);
});
