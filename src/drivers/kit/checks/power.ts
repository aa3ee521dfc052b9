import { type Bench, CheckFailure, gone, has, refused, same, Untried } from './bench.ts';
import type { DriverCheck } from './check.ts';

export const powerChecks: readonly DriverCheck[] = [
  {
    id: 'stop-start',
    title: 'stops and starts a machine, each call repeated, or declares that it cannot',
    why: 'Each call may come twice. Berth must probe a machine again if its address changes, and treats a stopped machine that is not shown as lost.',
    remedy:
      'Keep disk, address and created_at over stop and start; answer stop of a stopped machine with done; show it in get and list as stopped.',
    async run(bench) {
      const { driver } = bench;
      const ref = bench.ref('a');
      const { endpoint } = await bench.create(ref);
      if (!bench.manifest.stop) {
        refused('stop', await driver.stop(ref, null), 'unsupported');
        refused('start', await driver.start(ref, null), 'unsupported');
        return undefined;
      }
      has('stop', await bench.stop(ref), { power: 'stopped' });
      has('stop of a stopped machine', await bench.stop(ref), { power: 'stopped' });
      await assertShownStopped(bench, ref);
      if (!bench.manifest.resume) {
        refused('start', await driver.start(ref, null), 'unsupported');
        return undefined;
      }
      const started = await bench.start(ref);
      has('start', started, { power: 'running', endpoint });
      same('start of a running machine', await bench.start(ref), started);
    },
  },
  {
    id: 'power-of-none',
    title: 'fails with gone on a stop or start of a missing machine',
    why: 'After gone, Berth checks whether the machine was lost; done would leave an instance without a machine.',
    remedy: 'Fail stop and start with code gone and side_effect none if there is no such machine.',
    async run(bench) {
      const { driver, manifest } = bench;
      const none = bench.ref('none');
      refused('stop', await driver.stop(none, null), manifest.stop ? 'gone' : 'unsupported');
      refused('start', await driver.start(none, null), manifest.resume ? 'gone' : 'unsupported');
    },
  },
  {
    id: 'destroy-stopped',
    title: 'destroys a stopped machine',
    why: 'Its disk still costs money and holds the tenant’s data.',
    remedy: 'Destroy a machine in any power state.',
    async run(bench) {
      if (!bench.manifest.stop) throw new Untried('the manifest says that it cannot stop');
      const ref = bench.ref('a');
      await bench.create(ref);
      await bench.stop(ref);
      await bench.destroy(ref);
      gone('get', await bench.driver.get(ref));
    },
  },
  {
    id: 'restart',
    title: 'resets a running machine once for each id, or declares that it cannot',
    why: 'A restart whose answer was lost is sent again. The same id must not reset the machine twice.',
    remedy: 'Remember the restart_id with the machine: the same id resets it once.',
    async run(bench) {
      const { driver } = bench;
      const ref = bench.ref('a');
      const made = await bench.create(ref);
      const restart = (id: string) => (cookie: string | null) => driver.restart(ref, id, cookie);
      if (!bench.manifest.restart) {
        refused('restart', await restart('one')(null), 'unsupported');
        return undefined;
      }
      const restarted = await bench.finish('restart', restart('one'));
      const { createdAt, endpoint } = made;
      has('restart', restarted, { power: 'running', createdAt, endpoint });
      same('the same restart again', await restart('one')(null), { outcome: 'done', value: restarted });
      same('another restart', await bench.finishAfterCrash('restart', restart('two')), restarted);
      same('listed', await bench.listed(), [ref]);
    },
  },
  {
    id: 'restart-of-none',
    title: 'refuses to restart a missing or a stopped machine',
    why: 'A restart that starts a stopped machine makes it run without being billed.',
    remedy: 'Fail restart with gone if there is no machine, and with conflict if it is not running.',
    async run(bench) {
      const { driver, manifest } = bench;
      if (!manifest.restart) throw new Untried('the manifest says that it cannot restart');
      const ref = bench.ref('a');
      refused('restart of a missing machine', await driver.restart(ref, 'one', null), 'gone');
      if (!manifest.stop) return undefined;
      await bench.create(ref);
      await bench.stop(ref);
      refused('restart of a stopped machine', await driver.restart(ref, 'one', null), 'conflict');
      const presence = await driver.get(ref);
      same('power', presence.answer === 'observed' && presence.value.power, 'stopped');
    },
  },
];

/** Asserts that `get` and `list` show the machine as stopped. `list` must include stopped machines. */
async function assertShownStopped(bench: Bench, ref: string): Promise<void> {
  const presence = await bench.driver.get(ref);
  if (presence.answer !== 'observed')
    throw new CheckFailure(`get answers ${presence.answer} for a machine that is stopped`);
  has('get of a stopped machine', presence.value, { power: 'stopped' });
  await bench.untilShown('a machine with the power stopped in list', async () => {
    const listing = await bench.driver.list();
    const items = listing.answer === 'listed' ? listing.items : [];
    return items.find((item) => item.ref === ref && item.power === 'stopped');
  });
}
