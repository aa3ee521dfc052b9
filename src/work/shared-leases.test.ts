import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLog } from '../../test/support/doubles/log.ts';
import type { VirtualClock } from '../../test/support/time/virtual-clock.ts';
import { openBooks } from '../marketplace/ledger/ledger.fixture.ts';
import type { Store, Transaction } from '../marketplace/model/store.ts';
import { fenced, LeaseLost, type LeaseRecord } from './lease.ts';
import { divide, SharedLeases } from './shared-leases.ts';

let clock: VirtualClock;
let store: Store;
beforeEach(async () => {
  ({ clock, store } = await openBooks());
});
afterEach(() => store.close());

const log = silentLog;
const all = Array.from({ length: 16 }, (_, number) => `work:${String(number).padStart(2, '0')}`);

/** A process that holds leases and records which begin and end. */
class Member {
  readonly held = new Map<string, LeaseRecord>();
  readonly ended: string[] = [];
  /** A hand-over waits for this promise. */
  drained: Promise<void> = Promise.resolve();
  /** Whether it receives messages from the others. */
  isNotified = true;
  /** Whether its statements reach the store. */
  isReached = true;
  readonly leases: SharedLeases<Transaction>;
  readonly #unsubscribe: () => void;

  constructor(holder: string, names: readonly string[] = all) {
    const own = {
      transact: <T>(body: (tx: Transaction) => Promise<T>) =>
        this.isReached ? store.transact(body) : Promise.reject(new Error('the database does not answer')),
    };
    this.leases = new SharedLeases<Transaction>(
      { store: own, clock, log },
      {
        names,
        holder,
        begin: (lease) => void this.held.set(lease.name, lease),
        end: (name) => {
          this.held.delete(name);
          this.ended.push(name);
        },
        drain: async (name) => {
          await this.drained;
          this.held.delete(name);
        },
        notify: (tx) => tx.signals.wake('', 'leases'),
      },
    );
    this.#unsubscribe = store.onWake(() => this.isNotified && this.leases.balance());
  }

  get names(): string[] {
    return [...this.held.keys()].sort();
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    await this.leases.stop();
    await this.leases.release(all);
  }
}

function shares(...members: Member[]): number[] {
  return members.map(({ held }) => held.size).sort((a, b) => b - a);
}

/** Counts leases that more than one member holds. */
function overlap(...members: Member[]): number {
  const held = members.flatMap(({ names }) => names);
  return held.length - new Set(held).size;
}

describe('shared leases', () => {
  it('all belong at once to a process that is alone', async () => {
    const one = new Member('one');
    one.leases.balance();
    await clock.advance(0);
    expect(one.names).toEqual(all);
    await clock.advance(600_000);
    expect([one.names, one.ended]).toEqual([all, []]);
    await one.stop();
    expect(clock.pendingTimers).toBe(0);
  });

  it.each([
    [2, [8, 8]],
    [3, [6, 5, 5]],
    [4, [4, 4, 4, 4]],
  ])('are shared evenly by %d processes that begin at once [leases-shared]', async (count, expected) => {
    const members = Array.from({ length: count }, (_, index) => new Member(`m${index}`));
    for (const { leases } of members) leases.balance();
    await clock.advance(20_000);
    expect(shares(...members)).toEqual(expected);
    await clock.advance(60_000);
    expect([shares(...members), overlap(...members)]).toEqual([expected, 0]);
    expect(members.flatMap(({ ended }) => ended)).toEqual([]);
    for (const member of members) await member.stop();
  });

  it('are handed over to a new process within 20 s, even without signals [leases-without-signals]', async () => {
    const [one, two] = [new Member('one'), new Member('two')];
    one.isNotified = two.isNotified = false;
    one.leases.balance();
    await clock.advance(3_000);
    two.leases.balance();
    await clock.advance(20_000);
    expect([shares(one, two), overlap(one, two)]).toEqual([[8, 8], 0]);
    await one.stop();
    await two.stop();
  });

  it('are held by a process that alone has their names, beyond its share [leases-of-other-names]', async () => {
    const [one, two] = [new Member('one', all.slice(0, 5)), new Member('two', all)];
    for (const { leases } of [one, two]) leases.balance();
    await clock.advance(60_000);
    expect([[...one.names, ...two.names].sort(), overlap(one, two)]).toEqual([all, 0]);
    const { held } = one;
    two.ended.length = 0;
    await clock.advance(600_000);
    expect([two.names.length, two.ended]).toEqual([all.length - held.size, []]);
    const three = new Member('three');
    three.leases.balance();
    await clock.advance(90_000);
    expect(shares(one, two, three).reduce((sum, size) => sum + size)).toBe(all.length);
    expect(shares(two, three)[1]).toBeGreaterThanOrEqual(5);
    for (const member of [one, two, three]) await member.stop();
  });

  it('move one by one while a process ends: one whose work goes on delays no other [leases-end-alone]', async () => {
    const [one, two] = [new Member('one'), new Member('two')];
    for (const { leases } of [one, two]) leases.balance();
    await clock.advance(20_000);
    const [slow = '', ...others] = one.names;
    one.held.clear();
    await one.leases.stop();
    await one.leases.release(others);
    await clock.advance(1);
    expect(two.names).toEqual(all.filter((name) => name !== slow));
    await one.stop();
    await clock.advance(1);
    expect(two.names).toEqual(all);
    await two.stop();
  });

  it('move at once when a process ends, and after 30 s when it is killed [leases-taken-over]', async () => {
    const members = ['one', 'two', 'three'].map((name) => new Member(name));
    const [one, two, three] = members as [Member, Member, Member];
    for (const { leases } of members) leases.balance();
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
    expect(three.names).toEqual(all);
    expect(two.held.size).toBe(0);
    two.isReached = true;
    await two.stop();
    await three.stop();
  });

  it('stay with a process until its work in them has ended [leases-drained]', async () => {
    const [one, two] = [new Member('one'), new Member('two')];
    const running = Promise.withResolvers<void>();
    one.drained = running.promise;
    one.leases.balance();
    await clock.advance(1);
    two.leases.balance();
    // Longer than a lease: leases that are handed over are still renewed.
    await clock.advance(60_000);
    expect([one.held.size, two.held.size]).toEqual([all.length, 0]);
    running.resolve();
    await clock.advance(1);
    expect([shares(one, two), overlap(one, two)]).toEqual([[8, 8], 0]);
    await one.stop();
    await two.stop();
  });

  it('are lost to a suspended process, whose late writes are refused [leases-fenced]', async () => {
    const [one, two] = [new Member('one'), new Member('two')];
    one.leases.balance();
    await clock.advance(1);
    const before = new Map(one.held);
    one.isReached = one.isNotified = false;
    two.leases.balance();
    await clock.advance(45_000);
    expect(two.names).toEqual(all);
    expect([one.names, one.ended.toSorted()]).toEqual([[], all]);
    for (const lease of before.values())
      await expect(store.transact(fenced(lease, async () => undefined))).rejects.toThrow(LeaseLost);
    for (const lease of two.held.values()) await store.transact(fenced(lease, async () => undefined));
    one.isReached = one.isNotified = true;
    await clock.advance(20_000);
    expect([shares(one, two), overlap(one, two)]).toEqual([[8, 8], 0]);
    for (const [name, { token }] of one.held) expect(token).toBeGreaterThan(before.get(name)?.token ?? 0);
    await one.stop();
    await two.stop();
  });

  it('start again in a process that was suspended for longer than a lease and kept them', async () => {
    const one = new Member('one');
    one.leases.balance();
    await clock.advance(1);
    clock.step(60_000);
    clock.fire();
    await clock.advance(1);
    expect([one.ended.length, one.names, one.leases.isHeld(all[3] ?? '')]).toEqual([all.length, all, true]);
    await one.stop();
  });

  it('are lost individually: the others stay [lease-lost-alone]', async () => {
    const one = new Member('one');
    one.leases.balance();
    await clock.advance(1);
    one.leases.lost('work:05');
    expect([one.ended, one.held.size]).toEqual([['work:05'], all.length - 1]);
    await clock.advance(10_000);
    expect(one.names).toEqual(all);
    await one.stop();
  });

  it('are handed over after they are regained, if they were lost during the handover [lease-lost-draining]', async () => {
    const [one, two] = [new Member('one'), new Member('two')];
    const running = Promise.withResolvers<void>();
    one.drained = running.promise;
    one.leases.balance();
    await clock.advance(1);
    two.leases.balance();
    await clock.advance(12_000);
    one.leases.lost('work:15');
    running.resolve();
    await clock.advance(60_000);
    two.isReached = two.isNotified = false;
    await clock.advance(60_000);
    expect(one.names).toEqual(all);
    const three = new Member('three');
    three.leases.balance();
    await clock.advance(20_000);
    expect([shares(one, three), overlap(one, three)]).toEqual([[8, 8], 0]);
    two.isReached = true;
    await Promise.all([one.stop(), two.stop(), three.stop()]);
  });
});

describe('a division', () => {
  const held = (holder: string) => all.map((name) => ({ name, holder }));
  const seated = (holder: string, seat: number) => ({ name: `server:${seat}`, holder });
  const leaving = new Set<string>();
  const takesAll = false;

  it('counts a process without a lease by its seat', () => {
    const taken = [...held('a'), seated('a', 0), seated('b', 1)];
    expect(divide(all, taken, { holder: 'a', leaving, takesAll }).surplus).toEqual(all.slice(8));
    expect(divide(all, taken, { holder: 'b', leaving, takesAll }).wanted).toEqual(['server:1']);
  });

  it('hands over leases that are already being released first', () => {
    const taken = [...held('a'), seated('a', 0), seated('b', 1)];
    const { surplus } = divide(all, taken, { holder: 'a', leaving: new Set(all.slice(0, 2)), takesAll });
    expect(surplus).toEqual([...all.slice(10), ...all.slice(0, 2)]);
  });

  it('gives each of more processes than leases one lease at most', () => {
    const others = all.map((name, index) => ({ name, holder: `m${index}` }));
    const seats = all.map((_, seat) => seated(`m${seat}`, seat));
    const { wanted, surplus } = divide(all, [...others, ...seats], { holder: 'late', leaving, takesAll });
    expect([wanted, surplus]).toEqual([[], []]);
  });
});
