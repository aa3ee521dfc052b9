import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import type { Listing } from '../model/platform-driver.ts';
import { defaultReconcileOptions, type ReconcileOptions } from './options.ts';
import { type Judge, SharedListing } from './shared-listing.ts';

type Item = { ref: string };

function setUp(isBelieved: Judge<Item> = async ({ answer }) => answer === 'listed') {
  const clock = new VirtualClock();
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const options: ReconcileOptions = {
    ...defaultReconcileOptions,
    leaseMs: 30_000,
    callTimeoutMs: 5_000,
    probeIntervalMs: 1,
    watchIntervalMs: 1,
    holdFailedMs: null,
    holdLostClaimsMs: 0,
    keepDisksMs: 0,
    emptyForMs: 0,
    orphanGraceMs: 1,
    maxLosses: { share: 0, least: 1 },
    listPauseMs: 250,
  };
  const open: ((listing: Listing<Item>) => void)[] = [];
  const list = () => new Promise<Listing<Item>>((resolve) => open.push(resolve));
  const listing = new SharedListing<Item>({ clock, log, options }, list, isBelieved);
  return {
    clock,
    listing,
    open,
    /** Ends the listing that began as number `nth`, counted from 0. */
    end: async (nth: number, ...refs: string[]) => {
      open[nth]?.({ answer: 'listed', items: refs.map((ref) => ({ ref })) });
      await clock.advance(0);
    },
  };
}

describe('a listing', () => {
  it('proves nothing to a caller that came after its start; the next listing does', async () => {
    const { clock, listing, open, end } = setUp();
    const early = listing.confirmAbsent('a');
    await clock.advance(0);
    const late = listing.confirmAbsent('a');
    await end(0);
    expect(await early).toBeUndefined();
    await clock.advance(249);
    expect(open.length).toBe(1);
    await clock.advance(1);
    expect(open.length).toBe(2);
    await end(1, 'a');
    expect(await late).toMatch(/still lists it/);
  });

  it('is shared by all waiting callers', async () => {
    const { clock, listing, open, end } = setUp();
    const first = listing.observe();
    await clock.advance(0);
    const proofs = Promise.all(['a', 'b', 'c'].map((ref) => listing.confirmAbsent(ref)));
    await end(0);
    await first;
    await clock.advance(250);
    await end(1, 'b');
    expect((await proofs).map((doubt) => doubt === undefined)).toEqual([true, false, true]);
    expect(open.length).toBe(2);
  });

  it('of a server that was suspended does not delay the next listing by that time [listing-after-standstill]', async () => {
    const { clock, listing, open } = setUp();
    const first = listing.observe();
    await clock.advance(0);
    // The clock advances while the process is suspended: the answer is read before the timeout fires.
    const stoodStillUntil = clock.now() + 600_000;
    clock.now = () => stoodStillUntil;
    open[0]?.({ answer: 'listed', items: [] });
    await first;
    void listing.observe();
    await clock.advance(5_000);
    expect(open.length).toBe(2);
  });

  it('is not followed by another at once if it took long', async () => {
    const { clock, listing, open, end } = setUp();
    const first = listing.observe();
    await clock.advance(2_000);
    await end(0);
    await first;
    const second = listing.observe();
    await clock.advance(1_999);
    expect(open.length).toBe(1);
    await clock.advance(1);
    await end(1);
    expect((await second)?.items.size).toBe(0);
  });

  it.each<[string, Judge<Item>]>([
    ['is not trusted', async () => false],
    ['cannot be judged', () => Promise.reject(new Error('the store is away'))],
  ])('proves nothing if it %s', async (_, judge) => {
    const { clock, listing, end } = setUp(judge);
    const proof = listing.confirmAbsent('a');
    await clock.advance(0);
    await end(0);
    expect(await proof).toMatch(/is not trusted now/);
  });

  it('proves nothing if malformed, and the next one counts normally', async () => {
    const { clock, listing, open, end } = setUp();
    const proof = listing.confirmAbsent('a');
    await clock.advance(0);
    open[0]?.({ answer: 'listed' } as unknown as Listing<Item>);
    expect(await proof).toBeTypeOf('string');
    const next = listing.confirmAbsent('a');
    await clock.advance(250);
    await end(1);
    expect(await next).toBeUndefined();
  });

  it('proves nothing if it is late', async () => {
    const { clock, listing } = setUp(async () => false);
    const proof = listing.confirmAbsent('a');
    await clock.advance(5_000);
    expect(await proof).toBeTypeOf('string');
  });

  it('without an answer clears the sightings next to a silent host: the host may have been back meanwhile', async () => {
    const { clock, listing, open } = setUp();
    const beside = new Set(['b']);
    const hosts = { answered: ['a'], silent: ['b'] };
    const next = async (answer: Listing<Item>): Promise<boolean> => {
      const observed = listing.observe();
      await clock.advance(250);
      open.at(-1)?.(answer);
      await observed;
      return listing.partialListings.has('m', beside);
    };
    expect(await next({ answer: 'listed', items: [{ ref: 'm' }], hosts })).toBe(true);
    // A silent host may have answered for a moment, and the machine may have moved to it.
    expect(await next({ answer: 'listed', items: [], hosts })).toBe(false);
    expect(await next({ answer: 'listed', items: [{ ref: 'm' }], hosts })).toBe(true);
    const takeBack = listing.partialListings.removalSent('m');
    expect(await next({ answer: 'listed', items: [], hosts })).toBe(true);
    takeBack();
    expect(await next({ answer: 'listed', items: [], hosts })).toBe(false);
    expect(await next({ answer: 'listed', items: [{ ref: 'm' }], hosts })).toBe(true);
    expect(await next({ answer: 'unknown', reason: 'no connection' })).toBe(false);
  });

  it('has no waiting callers once it is stopped', async () => {
    const { clock, listing, open, end } = setUp();
    const first = listing.observe();
    await clock.advance(0);
    const second = listing.observe();
    await end(0);
    await first;
    listing.stop();
    expect(await second).toBeNull();
    expect([open.length, clock.pendingTimers]).toEqual([1, 0]);
  });
});
