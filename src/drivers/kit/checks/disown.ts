import { CheckFailure, gone, has, refused, same, show } from './bench.ts';
import type { DriverCheck } from './check.ts';

const cannot = { untried: 'the driver has no disown' };

/** Checks of disown: an operator takes a machine over, and only Berth's mark is removed from it. */
export const disownChecks: readonly DriverCheck[] = [
  {
    id: 'disown-running',
    title: 'does not release a machine that runs',
    why: 'Its address and its ports are free from then on: the next machine would have them too.',
    async run(bench) {
      const { disown } = bench.driver;
      if (disown === undefined) return cannot;
      const ref = bench.ref('a');
      await bench.create(ref);
      refused('disown of what runs', await disown(ref, null), 'conflict');
      const presence = await bench.driver.get(ref);
      if (presence.answer !== 'observed') throw new CheckFailure(`get answers ${presence.answer} after that`);
      has('get after that', presence.value, { power: 'running' });
      return undefined;
    },
  },
  {
    id: 'disown',
    title: 'releases a machine that is stopped: it is gone for Berth, and its disk is still there',
    why: 'An operator takes it over. What is still counted or removed as ours is lost to its new owner.',
    async run(bench) {
      const { driver, context, manifest } = bench;
      const { disown } = driver;
      const { removeReleased } = context;
      if (disown === undefined) return cannot;
      if (!manifest.stop) return { untried: 'the manifest says that it cannot stop' };
      if (removeReleased === undefined)
        return { untried: 'what is released stays on the platform, and nobody here removes it' };
      const ref = bench.ref('a');
      await bench.create(ref);
      await bench.stop(ref);
      let disks: readonly string[] | undefined;
      try {
        await bench.finish('disown', (cookie) => disown(ref, cookie));
        gone('get of what was released', await driver.get(ref));
        const listing = await driver.list();
        const { items = [], copies = [], leftovers = [] } = listing.answer === 'listed' ? listing : {};
        const shown = [...items, ...copies, ...leftovers].filter((one) => one.ref === ref);
        if (shown.length > 0) throw new CheckFailure(`list still shows ${show(shown)}`);
        const again = await bench.finish('disown of what was released', (cookie) => disown(ref, cookie));
        same('disown of what was released', again, null);
        await bench.destroy(ref);
      } finally {
        disks = await removeReleased(ref);
      }
      if (disks?.length === 0) throw new CheckFailure('its disk is gone after an order to destroy it');
      return undefined;
    },
  },
];
