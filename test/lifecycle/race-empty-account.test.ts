import { expect, it } from 'vitest';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';

const MINUTE_MS = 60_000;

it.each([1, 2])(
  'C2: %i machine(s) of a platform that shows an empty account for a minute, with success, are not ended, nor destroyed when it shows them again [F6]',
  async (count) => {
    let isEmpty = false;
    await using berth = await startPlainOrchestrator();
    const { driver } = berth.platform;
    const { get, list, destroy } = driver;
    // A key of another project, or one that was revoked on a platform that then shows nothing: reads succeed, and show nothing.
    driver.get = async (ref) => (isEmpty ? { answer: 'gone' } : get.call(driver, ref));
    driver.list = async () => (isEmpty ? { answer: 'listed', items: [] } : list.call(driver));
    driver.destroy = async (ref, cookie, order) =>
      isEmpty
        ? { outcome: 'failed', code: 'transient', sideEffect: 'none', detail: 'try again' }
        : destroy.call(driver, ref, cookie, order);
    const ids: string[] = [];
    for (let n = 0; n < count; n++) {
      const id = await berth.create();
      await berth.passUntil(`/instances/${id}`, 'ONLINE');
      ids.push(id);
    }
    await berth.clock.advance(5 * MINUTE_MS);
    isEmpty = true;
    await berth.clock.advance(MINUTE_MS);
    isEmpty = false;
    await berth.clock.advance(5 * MINUTE_MS);
    const read = await Promise.all(ids.map(async (id) => (await berth.read(`/instances/${id}`))['status']));
    expect({ read, machines: berth.platform.machines.size }).toEqual({
      read: ids.map(() => 'ONLINE'),
      machines: count,
    });
  },
);
