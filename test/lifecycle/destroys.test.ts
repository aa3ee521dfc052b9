import { describe, expect, it } from 'vitest';
import type { Step } from '../../src/orchestrator/model/platform-driver.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { anOrder } from '../support/rows/orchestrator-rows.ts';

const MINUTE_MS = 60_000;
const gone: Step<never> = { outcome: 'failed', code: 'gone', sideEffect: 'none', detail: 'it is not here' };

/** An instance that is ONLINE, on a platform whose answers a test sets. */
async function start() {
  const berth = await startPlainOrchestrator();
  const id = await berth.create();
  const path = `/instances/${id}`;
  await berth.passUntil(path, 'ONLINE');
  return {
    berth,
    path,
    status: async () => (await berth.read(path))['status'],
    isUnitHeld: () => berth.orchestrator.store.read.claims.isHeldBy(id),
    destroy: () => berth.orchestrator.request('DELETE', path),
  };
}

describe('a destroy', () => {
  it('that is answered gone ends DESTROYED by a look and a listing, and not before [destroy-finds-nothing]', async () => {
    const { berth, path, status, isUnitHeld, destroy } = await start();
    await using _ = berth;
    const { platform } = berth;
    const { driver } = platform;
    let showsInLook = true;
    driver.destroy = async () => gone;
    driver.get = async (ref) => {
      const value = platform.machines.get(ref);
      return showsInLook && value !== undefined ? { answer: 'observed', value } : { answer: 'gone' };
    };
    await destroy();
    await berth.clock.advance(2 * MINUTE_MS);
    expect([await status(), await isUnitHeld()]).toEqual(['DESTROYING', true]);
    showsInLook = false;
    await berth.clock.advance(2 * MINUTE_MS);
    expect([await status(), await isUnitHeld()]).toEqual(['DESTROYING', true]);
    for (const ref of platform.machines.keys()) platform.lose(ref);
    await berth.passUntil(path, 'GONE');
    expect(await isUnitHeld()).toBe(false);
  });

  /** Of two hosts, `n2` says nothing; the machine was seen on `seenOn`. */
  async function startBesideSilence(seenOn: string | undefined) {
    const asked = { answered: ['n1'], silent: ['n2'] };
    const started = await start();
    const { driver } = started.berth.platform;
    const { list, get, destroy } = driver;
    driver.list = async () => {
      const listing = await list.call(driver);
      if (listing.answer !== 'listed' || seenOn === undefined) return listing;
      const items = listing.items.map((item) => ({ ...item, host: seenOn }));
      return { ...listing, items, hosts: asked };
    };
    await started.berth.clock.advance(MINUTE_MS);
    driver.get = async (ref) => {
      const presence = await get.call(driver, ref);
      if (presence.answer !== 'gone') return presence;
      return { answer: 'unknown', reason: 'n2 does not answer', hosts: asked };
    };
    return { ...started, driver, remove: destroy };
  }

  it('of a machine that its own host does not have any more does not wait for another host, also where its answer was lost [destroy-beside-silence]', async () => {
    const { berth, path, isUnitHeld, driver, remove, destroy } = await startBesideSilence('n1');
    await using _ = berth;
    driver.destroy = async (ref, cookie) => {
      await remove.call(driver, ref, cookie, anOrder);
      return { outcome: 'failed', code: 'transient', sideEffect: 'possible', detail: 'n2 does not answer' };
    };
    await destroy();
    await berth.passUntil(path, 'GONE');
    expect(await isUnitHeld()).toBe(false);
  });

  it.each([
    ['on the host that does not answer', 'n2'],
    ['on no host that is known', undefined],
  ])('of a machine that was seen %s waits for it [destroy-on-silence]', async (_where, seenOn) => {
    const { berth, status, isUnitHeld, destroy } = await startBesideSilence(seenOn);
    await using _ = berth;
    await destroy();
    await berth.clock.advance(10 * MINUTE_MS);
    expect([await status(), await isUnitHeld()]).toEqual(['DESTROYING', true]);
  });
});
