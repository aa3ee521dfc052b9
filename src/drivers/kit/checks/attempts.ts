import { CheckFailure, gone, has, refused, same, show, Untried } from './bench.ts';
import type { DriverCheck } from './check.ts';

/** Each attempt to make or remove a machine or a volume has its own name. */
export const attemptChecks: readonly DriverCheck[] = [
  {
    id: 'attempt-destroy',
    title: 'destroys the machine of one attempt and keeps the machine of the next',
    why: 'Berth removes the leftovers of an earlier attempt by name while the next one runs: a driver that confuses the two removes the tenant’s machine.',
    remedy:
      'Compare the whole ref: a ref that begins with another one is another machine. Name all that belongs to a machine by its whole ref.',
    async run(bench) {
      if (bench.context.units === 1) throw new Untried('the platform holds one machine');
      const [first, second] = [bench.ref('a'), bench.ref('a-g1')];
      await bench.create(first);
      const made = await bench.create(second);
      await bench.destroy(first);
      gone('get of the first attempt', await bench.driver.get(first));
      same('get of the next attempt', await bench.driver.get(second), { answer: 'observed', value: made });
      await bench.destroy(first);
      same('listed when the first was destroyed twice', await bench.listed(), [second]);
    },
  },
  {
    id: 'volume-attempt-destroy',
    title: 'destroys the volume of one attempt and keeps the volume of the next',
    why: 'One of them holds the tenant’s data.',
    remedy: 'Compare the whole ref: a ref that begins with another one is another volume.',
    async run(bench) {
      const { volumes } = bench.driver;
      if (volumes === undefined) throw new Untried('the manifest says that there are no volumes');
      const [first, second] = [bench.volumeRef('v'), bench.volumeRef('v-g1')];
      await bench.createVolume(volumes, first);
      const made = await bench.createVolume(volumes, second);
      await bench.destroyVolume(volumes, first);
      const left = await bench.listedVolumes(volumes);
      if (left.length !== 1)
        throw new CheckFailure(`listed is ${show(left)}, expected the next attempt alone`);
      same('get of the next attempt', await volumes.get(second), { answer: 'observed', value: made });
    },
  },
];

/** Checks of disown: an operator takes a machine over, and only Berth's mark is removed from it. */
export const disownChecks: readonly DriverCheck[] = [
  {
    id: 'disown-running',
    title: 'refuses to disown a running machine',
    why: 'Disowning frees its address and ports: the next machine would get the same ones.',
    remedy: 'Fail disown with conflict and side_effect none where the machine is not stopped.',
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
    remedy:
      'Remove the ref from the machine and its disks, or mark it as released, so that get, list and destroy skip it; change nothing else, and answer done if there is no such machine.',
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
