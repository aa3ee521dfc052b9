import { expect, it } from 'vitest';
import type { Listing, PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import { backUp } from '../support/restored.ts';
import { until } from '../support/time/until.ts';
import { make, makeVolume, startFirst } from './recovery.fixture.ts';

/** Listings leave `isHidden` out, as before the platform shows what a create of the server before made. */
function hiding(driver: PlatformDriver, isHidden: (ref: string) => boolean): PlatformDriver {
  const without = <T extends { ref: string }>(listing: Listing<T>): Listing<T> =>
    listing.answer === 'listed'
      ? { ...listing, items: listing.items.filter(({ ref }) => !isHidden(ref)) }
      : listing;
  const { volumes } = driver;
  return {
    ...driver,
    list: async () => without(await driver.list()),
    ...(volumes && { volumes: { ...volumes, list: async () => without(await volumes.list()) } }),
  };
}

it.each([
  ['a machine', '/instances', make],
  ['a volume', '/volumes', makeVolume],
])(
  '%s whose row was lost is 503 once a listing shows it that only proves the end of another [shown-by-a-proof]',
  async (_what, path, makeOne) => {
    await using first = await startFirst();
    const other = await makeOne(first);
    const restore = await backUp(first);
    const id = await makeOne(first);
    let isHidden = true;
    await using restored = await restore({
      reconcile: { watchIntervalMs: 3_600_000 },
      wrapDriver: (driver) => hiding(driver, (ref) => isHidden && ref === `berth-${id}`),
    });
    // The create may have been under way when the listing of the start was made.
    expect(await restored.read(`${path}/${id}`)).toBe('404');
    isHidden = false;
    await restored.fetch(`/v1${path}/${other}`, {
      method: 'DELETE',
      headers: { Authorization: `Bearer ${first.key}` },
    });
    await until('it is gone', async () => (await restored.read(`${path}/${other}`)) === '404');
    expect(await restored.read(`${path}/${id}`)).toBe('503');
  },
);
