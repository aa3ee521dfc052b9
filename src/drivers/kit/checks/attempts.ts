import { CheckFailure, gone, same, show, Untried } from './bench.ts';
import type { DriverCheck } from './check.ts';

/** Each attempt to make or remove a machine or a volume has its own name. */
export const attemptChecks: readonly DriverCheck[] = [
  {
    id: 'attempt-destroy',
    title: 'destroys the machine of one attempt and keeps the machine of the next',
    why: 'Berth removes the leftovers of an earlier attempt by name while the next one runs: a driver that confuses the two removes the tenant’s machine.',
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
