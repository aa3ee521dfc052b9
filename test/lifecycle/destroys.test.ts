import { describe, expect, it } from 'vitest';
import type { Step } from '../../src/orchestrator/model/platform-driver.ts';
import { silentLog } from '../support/doubles/log.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { anOrder } from '../support/rows/orchestrator-rows.ts';

const MINUTE_MS = 60_000;
const failed = (code: 'gone' | 'conflict'): Step<never> => ({
  outcome: 'failed',
  code,
  sideEffect: 'none',
  detail: 'a minimum reservation of 20 minutes',
});

/** An instance that is ONLINE, on a platform whose answers a test sets; `alarms` are those of steps that keep failing. */
async function start() {
  const alarms: object[] = [];
  const berth = await startPlainOrchestrator(() => 'none', {
    log: { ...silentLog, error: (fields) => alarms.push(fields) },
  });
  const id = await berth.create();
  const path = `/instances/${id}`;
  await berth.passUntil(path, 'ONLINE');
  return {
    berth,
    id,
    path,
    alarms,
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
    driver.destroy = async () => failed('gone');
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

  it('that is refused for 20 minutes stays DESTROYING, holds its unit, is asked ever more slowly, alarms, then ends [destroy-refused]', async () => {
    const { berth, id, path, alarms, status, isUnitHeld, destroy } = await start();
    await using _ = berth;
    const { platform } = berth;
    const { driver } = platform;
    const remove = driver.destroy;
    const askedAt: number[] = [];
    driver.destroy = async () => {
      askedAt.push(berth.clock.now());
      return failed('conflict');
    };
    await destroy();
    for (let minute = 0; minute < 20; minute++) {
      await berth.clock.advance(MINUTE_MS);
      expect([await status(), await isUnitHeld(), platform.machines.size]).toEqual(['DESTROYING', true, 1]);
    }
    const pauses = askedAt.slice(1).map((at, index) => at - (askedAt[index] ?? 0));
    const [first = 0, second = 0] = pauses;
    expect([first, second].every((pause) => pause < 1_000)).toBe(true);
    // The last pause is 30 s, with a quarter of jitter.
    expect(Math.min(...pauses.slice(8))).toBeGreaterThanOrEqual(22_500);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(37_600);
    const failing = alarms.filter((fields) => 'attempt' in fields);
    expect(failing.length).toBe(Math.floor(askedAt.length / 10));
    expect(failing[0]).toMatchObject({
      instance: id,
      account: berth.orchestrator.account.id,
      step: 'destroy',
      attempt: 10,
    });
    const standing = () => berth.orchestrator.store.read.alarms.list();
    expect(await standing()).toMatchObject([{ kind: 'step_failing', subject: id, platform: 'default' }]);
    driver.destroy = remove;
    await berth.passUntil(path, 'GONE');
    expect([await isUnitHeld(), platform.machines.size]).toEqual([false, 0]);
    await berth.clock.advance(MINUTE_MS);
    expect(await standing()).toEqual([]);
  });
});
