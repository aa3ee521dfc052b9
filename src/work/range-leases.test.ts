import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLog } from '../../test/support/doubles/log.ts';
import type { VirtualClock } from '../../test/support/time/virtual-clock.ts';
import { openBooks } from '../marketplace/ledger/ledger.fixture.ts';
import type { Store, Transaction } from '../marketplace/model/store.ts';
import { fenced, LeaseLost, type LeaseRecord } from './lease.ts';
import { divide, namesOf, RANGES, RangeLeases, rangeOf } from './range-leases.ts';

let clock: VirtualClock;
let store: Store;
beforeEach(async () => {
  ({ clock, store } = await openBooks());
});
afterEach(() => store.close());

const log = silentLog;
const all = Array.from({ length: RANGES }, (_, range) => range);

/** A process that holds ranges and records which begin and end. */
class Member {
  readonly held = new Map<number, LeaseRecord>();
  readonly ended: number[] = [];
  /** A hand-over waits for this promise. */
  drained: Promise<void> = Promise.resolve();
  /** Whether it receives messages from the others. */
  isNotified = true;
  /** Whether its statements reach the store. */
  isReached = true;
  readonly leases: RangeLeases<Transaction>;
  readonly #unsubscribe: () => void;

  constructor(holder: string) {
    const own = {
      transact: <T>(body: (tx: Transaction) => Promise<T>) =>
        this.isReached ? store.transact(body) : Promise.reject(new Error('the database does not answer')),
    };
    this.leases = new RangeLeases<Transaction>(
      { store: own, clock, log },
      {
        name: 'work',
        holder,
        begin: (won) => {
          for (const { range, lease } of won) this.held.set(range, lease);
        },
        end: (ranges) => {
          for (const range of ranges) this.held.delete(range);
          this.ended.push(...ranges);
        },
        drain: async (range) => {
          await this.drained;
          this.held.delete(range);
        },
        notify: (tx) => tx.signals.wake('work', 'ranges'),
      },
    );
    this.#unsubscribe = store.onWake(() => this.isNotified && this.leases.balance());
  }

  get ranges(): number[] {
    return [...this.held.keys()].sort((a, b) => a - b);
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    await this.leases.stop();
    await this.leases.release();
  }
}

function shares(...members: Member[]): number[] {
  return members.map(({ held }) => held.size).sort((a, b) => b - a);
}

/** Counts ranges that more than one member holds. */
function overlap(...members: Member[]): number {
  const held = members.flatMap(({ ranges }) => ranges);
  return held.length - new Set(held).size;
}

describe('ranges', () => {
  it('all belong at once to a process that is alone', async () => {
    const one = new Member('one');
    one.leases.start();
    await clock.advance(0);
    expect(one.ranges).toEqual(all);
    await clock.advance(600_000);
    expect([one.ranges, one.ended]).toEqual([all, []]);
    await one.stop();
    expect(clock.pendingTimers).toBe(0);
  });

  it.each([
    [2, [8, 8]],
    [3, [6, 6, 4]],
    [4, [4, 4, 4, 4]],
  ])('are shared evenly by %d processes that begin at once [ranges-shared]', async (count, expected) => {
    const members = Array.from({ length: count }, (_, index) => new Member(`m${index}`));
    for (const { leases } of members) leases.start();
    await clock.advance(1);
    expect(shares(...members)).toEqual(expected);
    await clock.advance(60_000);
    expect([shares(...members), overlap(...members)]).toEqual([expected, 0]);
    expect(members.flatMap(({ ended }) => ended)).toEqual([]);
    for (const member of members) await member.stop();
  });

  it('are handed over to a new process within 20 s, even without signals [ranges-without-signals]', async () => {
    const [one, two] = [new Member('one'), new Member('two')];
    one.isNotified = two.isNotified = false;
    one.leases.start();
    await clock.advance(3_000);
    two.leases.start();
    await clock.advance(20_000);
    expect([shares(one, two), overlap(one, two)]).toEqual([[8, 8], 0]);
    await one.stop();
    await two.stop();
  });

  it('move at once when a process ends, and after 30 s when it is killed [ranges-taken-over]', async () => {
    const members = ['one', 'two', 'three'].map((name) => new Member(name));
    const [one, two, three] = members as [Member, Member, Member];
    for (const { leases } of members) leases.start();
    await clock.advance(5_000);
    one.held.clear();
    await one.stop();
    await clock.advance(1);
    expect(shares(two, three)).toEqual([8, 8]);
    // `two` is killed: it does not release its leases.
    two.isReached = two.isNotified = false;
    await clock.advance(29_000);
    expect(three.held.size).toBe(8);
    await clock.advance(11_001);
    expect(three.ranges).toEqual(all);
    expect(two.held.size).toBe(0);
    two.isReached = true;
    await two.stop();
    await three.stop();
  });

  it('stay with a process until its work in them has ended [ranges-drained]', async () => {
    const [one, two] = [new Member('one'), new Member('two')];
    const running = Promise.withResolvers<void>();
    one.drained = running.promise;
    one.leases.start();
    await clock.advance(1);
    two.leases.start();
    // Longer than a lease: ranges that are handed over are still renewed.
    await clock.advance(60_000);
    expect([one.held.size, two.held.size]).toEqual([RANGES, 0]);
    running.resolve();
    await clock.advance(1);
    expect([shares(one, two), overlap(one, two)]).toEqual([[8, 8], 0]);
    await one.stop();
    await two.stop();
  });

  it('are lost to a suspended process, whose late writes are refused [ranges-fenced]', async () => {
    const [one, two] = [new Member('one'), new Member('two')];
    one.leases.start();
    await clock.advance(1);
    const before = new Map(one.held);
    one.isReached = one.isNotified = false;
    two.leases.start();
    await clock.advance(45_000);
    expect(two.ranges).toEqual(all);
    expect([one.ranges, one.ended.toSorted((a, b) => a - b)]).toEqual([[], all]);
    for (const lease of before.values())
      await expect(store.transact(fenced(lease, async () => undefined))).rejects.toThrow(LeaseLost);
    for (const lease of two.held.values()) await store.transact(fenced(lease, async () => undefined));
    one.isReached = one.isNotified = true;
    await clock.advance(20_000);
    expect([shares(one, two), overlap(one, two)]).toEqual([[8, 8], 0]);
    for (const [range, { token }] of one.held) expect(token).toBeGreaterThan(before.get(range)?.token ?? 0);
    await one.stop();
    await two.stop();
  });

  it('start again in a process that was suspended for longer than a lease and kept them', async () => {
    const one = new Member('one');
    one.leases.start();
    await clock.advance(1);
    clock.step(60_000);
    clock.fire();
    await clock.advance(1);
    expect([one.ended.length, one.ranges, one.leases.isHeld(3)]).toEqual([RANGES, all, true]);
    await one.stop();
  });

  it('are lost individually: the others stay [range-lost-alone]', async () => {
    const one = new Member('one');
    one.leases.start();
    await clock.advance(1);
    one.leases.lost(5);
    expect([one.ended, one.held.size]).toEqual([[5], RANGES - 1]);
    await clock.advance(10_000);
    expect(one.ranges).toEqual(all);
    await one.stop();
  });

  it('are handed over after they are regained, if they were lost during the handover [range-lost-draining]', async () => {
    const [one, two] = [new Member('one'), new Member('two')];
    const running = Promise.withResolvers<void>();
    one.drained = running.promise;
    one.leases.start();
    await clock.advance(1);
    two.leases.start();
    await clock.advance(12_000);
    one.leases.lost(RANGES - 1);
    running.resolve();
    await clock.advance(60_000);
    two.isReached = two.isNotified = false;
    await clock.advance(60_000);
    expect(one.ranges).toEqual(all);
    const three = new Member('three');
    three.leases.start();
    await clock.advance(20_000);
    expect([shares(one, three), overlap(one, three)]).toEqual([[8, 8], 0]);
    two.isReached = true;
    await Promise.all([one.stop(), two.stop(), three.stop()]);
  });
});

describe('a division', () => {
  const names = namesOf('work');
  const held = (holder: string, ...ranges: number[]) =>
    ranges.map((range) => ({ name: names.ranges[range] ?? '', holder }));
  const seated = (holder: string, seat: number) => ({ name: names.seats[seat] ?? '', holder });
  const leaving = new Set<number>();

  it('counts a process without a range by its seat', () => {
    const taken = [...held('a', ...all), seated('a', 0), seated('b', 1)];
    const { surplus, isNew } = divide(names, taken, { holder: 'a', leaving });
    expect([surplus, isNew]).toEqual([[8, 9, 10, 11, 12, 13, 14, 15], false]);
    expect(divide(names, taken, { holder: 'b', leaving }).wanted).toEqual([names.seats[1]]);
  });

  it('hands over ranges that are already being released first', () => {
    const taken = [...held('a', ...all), seated('a', 0), seated('b', 1)];
    const { surplus } = divide(names, taken, { holder: 'a', leaving: new Set([0, 1]) });
    expect(surplus).toEqual([10, 11, 12, 13, 14, 15, 0, 1]);
  });

  it('gives each of more processes than ranges one range at most', () => {
    const others = all.map((range) => held(`m${range}`, range)[0] ?? seated('', 0));
    const seats = all.map((seat) => seated(`m${seat}`, seat));
    const { wanted, surplus } = divide(names, [...others, ...seats], { holder: 'late', leaving });
    expect([wanted, surplus]).toEqual([[], []]);
  });
});

it('puts an id into the range of its last hexadecimal digit', () => {
  expect(['dep-0', 'vol-09', 'dep-a', 'vol-f', 'list', ''].map(rangeOf)).toEqual([0, 9, 10, 15, 0, 0]);
});
