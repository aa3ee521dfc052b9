import { CheckFailure, gone, has, refused, same, show, Untried } from './bench.ts';
import type { DriverCheck } from './check.ts';

/** Checks of disown: an operator takes a machine over, and only Berth's mark is removed from it. */
export const disownChecks: readonly DriverCheck[] = [
  {
    id: 'disown-running',
    title: 'refuses to disown a running machine',
    why: 'Disowning frees its address and ports: the next machine would get the same ones.',
    async run(bench) {
      const { disown } = bench.driver;
      if (disown === undefined) throw new Untried('the driver has no disown');
      const ref = bench.ref('a');
      await bench.create(ref);
      refused('disown of a running machine', await disown(ref, null), 'conflict');
      const presence = await bench.driver.get(ref);
      if (presence.answer !== 'observed') throw new CheckFailure(`get answers ${presence.answer} after that`);
      has('get after that', presence.value, { power: 'running' });
    },
  },
  {
    id: 'disown',
    title: 'disowns a stopped machine: Berth no longer sees it, and its disk is kept',
    why: 'An operator takes the machine over. If Berth still counted or removed it, its new owner would lose it.',
    async run(bench) {
      const { driver, context, manifest } = bench;
      const { disown } = driver;
      const { removeReleased } = context;
      if (disown === undefined) throw new Untried('the driver has no disown');
      if (!manifest.stop) throw new Untried('the manifest says that it cannot stop');
      if (removeReleased === undefined)
        throw new Untried('a disowned machine stays on the platform, and this suite cannot remove it');
      const ref = bench.ref('a');
      await bench.create(ref);
      await bench.stop(ref);
      let disks: readonly string[] | undefined;
      try {
        await bench.finish('disown', (cookie) => disown(ref, cookie));
        gone('get of the disowned machine', await driver.get(ref));
        const listing = await driver.list();
        const { items = [], copies = [], leftovers = [] } = listing.answer === 'listed' ? listing : {};
        const shown = [...items, ...copies, ...leftovers].filter((one) => one.ref === ref);
        if (shown.length > 0) throw new CheckFailure(`list still shows ${show(shown)}`);
        const again = await bench.finish('disown of the disowned machine', (cookie) => disown(ref, cookie));
        same('disown of the disowned machine', again, null);
        await bench.destroy(ref);
      } finally {
        disks = await removeReleased(ref);
      }
      if (disks?.length === 0) throw new CheckFailure('its disk is gone after an order to destroy it');
    },
  },
];
