import type { ObservedMachine } from '../../../orchestrator/model/platform-driver.ts';
import { type Bench, CheckFailure, gone, has, refused, same, show, TRIAL_ORDER, Untried } from './bench.ts';
import type { DriverCheck } from './check.ts';

/** Characters that a platform may mishandle: quotes, braces, multibyte characters, and one that XML forbids. */
export const NOTE = JSON.stringify({
  name: 'a "note" of {ours} <&>',
  city: 'Köln 東京 \u{fffe}',
  filler: 'x'.repeat(4_000),
});

export const machineChecks: readonly DriverCheck[] = [
  {
    id: 'manifest',
    title: 'has a consistent manifest',
    why: 'The core and the API rely on what the manifest says.',
    remedy: 'Correct the capabilities in the answer to info.',
    async run({ manifest, driver }) {
      const { name, stop, resume, attachVolume, createVisibleWithinMs, cloudInitBytes } = manifest;
      if (name === '') throw new CheckFailure('the name is empty');
      if (resume && !stop) throw new CheckFailure('resume is true and stop is false: resume needs stop');
      same(
        'presence of volumes, compared with attachVolume',
        driver.volumes !== undefined,
        attachVolume !== 'none',
      );
      for (const [field, value] of Object.entries({ createVisibleWithinMs, cloudInitBytes }))
        if (!Number.isInteger(value) || value < 0)
          throw new CheckFailure(`${field} is ${value}, expected 0 or a whole number`);
    },
  },
  {
    id: 'never-made',
    title: 'answers gone for a machine that was never made',
    why: 'Berth creates a machine only after proof that none exists; an unknown here blocks every create.',
    remedy: 'Answer get with gone if your platform reports for certain that it has no such ref.',
    async run(bench) {
      gone('get', await bench.driver.get(bench.ref('none')));
    },
  },
  {
    id: 'listing',
    title: 'lists every machine with a ref of Berth, and no destroyed one',
    why: 'Berth observes all machines through the listing, and eventually treats a missing one as lost.',
    remedy:
      'List everything with a ref, from the platform itself and not from memory, each with its own endpoint; omit removed ones, and answer get from the same source.',
    async run(bench) {
      const ref = bench.ref('a');
      same('listed before the create', await bench.listed(), []);
      await bench.create(ref);
      await bench.untilShown('a machine in list', async () =>
        (await bench.listed()).length > 0 ? true : undefined,
      );
      same('listed after the create', await bench.listed(), [ref]);
      const others = bench.context.units === 1 ? [] : [bench.ref('b')];
      for (const other of others) await assertSameAsGet(bench, [ref, other]);
      await bench.destroy(ref);
      same('listed after the destroy', await bench.listed(), others);
    },
  },
  {
    id: 'avoid-hosts',
    title: 'makes no machine on a host that it must avoid',
    why: 'An operator cordons a host before maintenance: a machine made there goes down with the host.',
    remedy: 'Leave out the hosts of spec.avoid_hosts; where no other has room, fail with code capacity.',
    async run(bench) {
      if (bench.context.units === 1) throw new Untried('the platform holds one machine');
      const { host } = await bench.create(bench.ref('a'));
      if (host === undefined) throw new Untried('the machines report no host');
      const ref = bench.ref('b');
      const spec = bench.spec(ref, { avoidHosts: [host] });
      const made = await bench
        .finish('create', (cookie) => bench.driver.create(spec, cookie))
        .catch((error: unknown) => {
          // No other host may have room.
          if (error instanceof CheckFailure) return undefined;
          throw error;
        });
      if (made?.host === host)
        throw new CheckFailure(`create had to avoid the host ${host}, and made the machine there`);
    },
  },
  {
    id: 'create',
    title: 'makes a running machine with an endpoint that get and list show',
    why: 'Berth probes the endpoint before ONLINE; create and get must describe the same machine.',
    remedy:
      'Answer create with pending until the machine runs and has an endpoint, then with done. A phase is one line, its deadline in milliseconds since the epoch.',
    async run(bench) {
      const ref = bench.ref('a');
      const made = await bench.create(ref);
      has('create', made, { ref, power: 'running' });
      if (made.endpoint === undefined)
        throw new CheckFailure(`create is done without an endpoint: ${show(made)}`);
      const seen = await shown(bench, ref);
      same('get', seen, made);
    },
  },
  {
    id: 'create-visible',
    title: 'shows a machine after the first call of create',
    why: 'Berth finds a create whose answer was lost by its ref. A machine that stays hidden longer than the manifest says is made twice.',
    remedy:
      'Show a machine in get and list as building from its first create on, or declare create_visible_within_ms.',
    async run(bench) {
      const ref = bench.ref('a');
      await bench.driver.create(bench.spec(ref), null);
      has('get', await shown(bench, ref), { ref });
    },
  },
  {
    id: 'create-adopts',
    title: 'adopts the machine when create is repeated without its cookie',
    why: 'After a crash Berth sends the create again. A driver that makes another machine leaks one, which costs money.',
    remedy: 'Begin create by looking for the ref, and continue with the machine that exists.',
    async run(bench) {
      const ref = bench.ref('a');
      const made = await bench.create(ref);
      same('the second create', await bench.create(ref), made);
      same('listed', await bench.listed(), [ref]);
    },
  },
  {
    id: 'create-at-once',
    title: 'makes one machine when create is called twice at once',
    why: 'For a moment, two servers can both hold the same create.',
    remedy:
      'Let the platform refuse a second resource of the same name, or hold a lock for the ref while you make it.',
    async run(bench) {
      const ref = bench.ref('a');
      const { driver } = bench;
      await Promise.all([driver.create(bench.spec(ref), null), driver.create(bench.spec(ref), null)]);
      await bench.create(ref);
      same('listed', await bench.listed(), [ref]);
    },
  },
  {
    id: 'create-reopened',
    title: 'continues a create that another process started',
    why: 'The memory of a driver is lost with its process. Only the platform and the cookie survive.',
    remedy: 'Keep nothing in memory that a create needs: find the machine by its ref.',
    async run(bench) {
      const { reopen } = bench.context;
      if (reopen === undefined) throw new Untried('this suite cannot open the driver twice');
      const ref = bench.ref('a');
      const first = await bench.driver.create(bench.spec(ref), null);
      const other = bench.limited(await reopen());
      try {
        let cookie: string | null = first.outcome === 'pending' ? first.cookie : null;
        const made = await bench.finish('create in another process', (next) => {
          const given = next ?? cookie;
          cookie = null;
          return other.create(bench.spec(ref), given);
        });
        same('get in the first process', await shown(bench, ref), made);
      } finally {
        await other.close();
      }
    },
  },
  {
    id: 'crashes',
    title: 'resumes a create, a stop, a start and a destroy without their cookies',
    why: 'A crash loses the cookie. Each call must find out from the platform how far the work is.',
    remedy:
      'Treat a call with cookie null as one that may already be in progress: look for the machine first, then continue.',
    async run(bench) {
      const ref = bench.ref('a');
      const { driver } = bench;
      const { stop, resume } = bench.manifest;
      const spec = bench.spec(ref);
      const made = await bench.finishAfterCrash('create', (cookie) => driver.create(spec, cookie));
      const { createdAt } = made;
      has('create', made, { ref, power: 'running' });
      if (stop) {
        const stopped = await bench.finishAfterCrash('stop', (cookie) => driver.stop(ref, cookie));
        has('stop', stopped, { power: 'stopped', createdAt });
      }
      if (stop && resume) {
        const started = await bench.finishAfterCrash('start', (cookie) => driver.start(ref, cookie));
        has('start', started, { power: 'running', createdAt });
      }
      same('listed', await bench.listed(), [ref]);
      await bench.finishAfterCrash('destroy', (cookie) => driver.destroy(ref, cookie, TRIAL_ORDER));
      gone('get', await driver.get(ref));
    },
  },
  {
    id: 'notes',
    title: 'returns the note of a machine in every observation, or in none',
    why: 'Berth restores rows of a lost database from the notes: a wrong note gives the machine to the wrong account.',
    remedy: 'Keep the note with the machine, byte for byte, from its creation on; or say keeps_notes: false.',
    async run(bench) {
      const ref = bench.ref('a');
      const { driver } = bench;
      const expected = bench.manifest.keepsNotes ? NOTE : undefined;
      await driver.create(bench.spec(ref, { note: NOTE }), null);
      const early = await shown(bench, ref);
      same('the note in the first observation', early.note, expected);
      same('the note of create', (await bench.create(ref, { note: NOTE })).note, expected);
      const listing = await driver.list();
      const items = listing.answer === 'listed' ? listing.items : [];
      same('the note in list', items.find((item) => item.ref === ref)?.note, expected);
      if (bench.manifest.stop) same('the note of stop', (await bench.stop(ref)).note, expected);
    },
  },
  {
    id: 'destroy',
    title: 'is done with destroy only when get proves the machine gone',
    why: 'Billing ends with the proof. A machine that keeps running after it costs money that no tenant pays.',
    remedy:
      'Answer destroy with done only when the machine and all that belongs to it (disk, ports, addresses, forwards) are gone; get is gone then.',
    async run(bench) {
      const ref = bench.ref('a');
      const { host } = await bench.create(ref);
      await bench.destroy(ref);
      const found = await bench.driver.get(ref);
      gone('get', found);
      if (host !== undefined && 'hosts' in found && found.hosts?.answered.includes(host) === false)
        throw new CheckFailure(
          `get says gone, and ${host}, which had the machine, is not in hosts.answered: Berth ignores the answer`,
        );
      const listing = await bench.driver.list();
      const { leftovers = [] } = listing.answer === 'listed' ? listing : {};
      const left = leftovers.find((one) => one.ref === ref);
      if (left !== undefined) throw new CheckFailure(`list has it among its leftovers: ${left.detail}`);
    },
  },
  {
    id: 'destroy-building',
    title: 'destroys a machine that is still being built',
    why: 'A DELETE may come at any moment, also right after the create.',
    remedy: 'Cancel the build, or answer pending until it has finished and then destroy the machine.',
    async run(bench) {
      const ref = bench.ref('a');
      await bench.driver.create(bench.spec(ref), null);
      await shown(bench, ref);
      await bench.destroy(ref);
      gone('get', await bench.driver.get(ref));
    },
  },
  {
    id: 'destroy-again',
    title: 'is done at once with each destroy of a missing machine',
    why: 'Berth repeats a destroy until it is done, also after a lost answer. An error here makes it repeat for ever.',
    remedy: 'Answer destroy with done if there is no such machine.',
    async run(bench) {
      const ref = bench.ref('a');
      const none = bench.ref('none');
      await bench.create(ref);
      await Promise.all([bench.destroy(ref), bench.destroy(ref)]);
      const done = { outcome: 'done', value: null };
      same('destroy of a destroyed machine', await bench.driver.destroy(ref, null, TRIAL_ORDER), done);
      same(
        'destroy of a machine that was never made',
        await bench.driver.destroy(none, null, TRIAL_ORDER),
        done,
      );
    },
  },
];

/** The machine as `get` shows it, after the time in which it may be hidden. */
const shown = (bench: Bench, ref: string): Promise<ObservedMachine> =>
  bench.untilShown('a machine in get', async () => {
    const presence = await bench.driver.get(ref);
    if (presence.answer === 'unknown') throw new CheckFailure(`get answers unknown: ${presence.reason}`);
    return presence.answer === 'observed' ? presence.value : undefined;
  });

export const capacityChecks: readonly DriverCheck[] = [
  {
    id: 'capacity',
    title: 'refuses a machine beyond its capacity, and changes nothing',
    why: 'The code capacity marks the offer as sold out. After any other code Berth retries on a full platform.',
    remedy:
      'Count before you make anything, and fail with code capacity and side_effect none if there is no room.',
    async run(bench) {
      const { units } = bench.context;
      if (units === undefined) throw new Untried('the platform has more units than this suite uses');
      const refs = Array.from({ length: units }, (_, unit) => bench.ref(`${unit}`));
      for (const ref of refs) await bench.create(ref);
      const over = bench.ref('over');
      refused('create beyond the capacity', await bench.driver.create(bench.spec(over), null), 'capacity');
      gone('get of the refused machine', await bench.driver.get(over));
      await bench.destroy(refs[0] ?? over);
      has('create after a unit became free', await bench.create(over), { power: 'running' });
    },
  },
  {
    id: 'inventory',
    title: 'counts one unit less for each machine, and zero when the next create is refused',
    why: 'Availability follows this count: too high sells missing units, too low hides free ones.',
    remedy: 'Count from the current state of the platform. Count each offer as if it were the only one sold.',
    async run(bench) {
      if (bench.driver.inventory === undefined) throw new Untried('the driver has no inventory');
      const ref = bench.ref('a');
      const before = await freeUnits(bench, ref);
      await bench.create(ref);
      same('free units with one machine more', await freeUnits(bench, ref), before - 1);
      await bench.destroy(ref);
      same('free units after the destroy', await freeUnits(bench, ref), before);
      const { units } = bench.context;
      if (units !== undefined) same('free units of the empty platform', before, units);
    },
  },
  {
    id: 'impossible',
    title: 'refuses an impossible create with the right code, and changes nothing',
    why: 'The code decides which error the tenant sees, and whether Berth retries the create.',
    remedy: 'Check what the spec asks for before you make anything, and fail with the code that says why.',
    async run(bench) {
      const { impossible = {} } = bench.context;
      const cases = Object.entries(impossible);
      if (cases.length === 0) throw new Untried('the suite was given no create that must be refused');
      for (const [code, overrides] of cases) {
        const ref = bench.ref(code.replaceAll('_', '-'));
        const step = await bench.driver.create(bench.spec(ref, overrides), null);
        refused(`create with ${show(overrides)}`, step, code as keyof typeof impossible);
        gone('get of the refused machine', await bench.driver.get(ref));
      }
    },
  },
  {
    id: 'unreachable',
    title: 'answers unknown while the platform does not answer',
    why: 'An answer of gone, or an empty listing, would end every instance while the platform is down.',
    remedy: 'Answer get and list with unknown where the platform does not answer.',
    async run(bench) {
      const { openUnreachable } = bench.context;
      if (openUnreachable === undefined) throw new Untried('this suite cannot cut off the platform');
      const driver = bench.limited(await openUnreachable());
      try {
        const ref = bench.ref('a');
        same('get', (await driver.get(ref)).answer, 'unknown');
        same('list', (await driver.list()).answer, 'unknown');
        if (driver.inventory !== undefined) same('inventory', (await driver.inventory()).answer, 'unknown');
        const destroyed = await driver.destroy(ref, null, TRIAL_ORDER).catch(() => undefined);
        if (destroyed?.outcome === 'done')
          throw new CheckFailure('destroy is done although the platform was not reached');
        const made = await driver.create(bench.spec(ref), null).catch(() => undefined);
        if (made !== undefined) refused('create', made, 'transient', 'unknown_outcome', 'auth');
      } finally {
        await driver.close();
      }
    },
  },
];

async function freeUnits(bench: Bench, ref: string): Promise<number> {
  const inventory = await bench.driver.inventory?.();
  if (inventory?.answer !== 'counted') throw new CheckFailure(`inventory answers ${show(inventory)}`);
  const { offerId, datacenter } = bench.spec(ref);
  const found = inventory.free.filter((free) => free.offerId === offerId && free.datacenter === datacenter);
  if (found.length !== 1)
    throw new CheckFailure(
      `inventory names ${offerId} in ${datacenter} ${found.length} times: ${show(inventory)}`,
    );
  return found[0]?.units ?? 0;
}

/** Makes the last of the machines. Then list and get must show all of them, each at its own endpoint. */
async function assertSameAsGet(bench: Bench, refs: readonly string[]): Promise<void> {
  await bench.create(refs.at(-1) ?? '');
  await bench.untilShown('one more machine in list', async () =>
    (await bench.listed()).includes(refs.at(-1) ?? '') ? true : undefined,
  );
  same(`listed when there are ${refs.length}`, await bench.listed(), [...refs].sort());
  const listing = await bench.driver.list();
  const items = listing.answer === 'listed' ? listing.items.filter(({ ref }) => refs.includes(ref)) : [];
  const endpoints = items.flatMap(({ endpoint }) =>
    endpoint ? [`${endpoint.publicIp}:${endpoint.sshPort}`] : [],
  );
  const shared = endpoints.find((endpoint, at) => endpoints.indexOf(endpoint) < at);
  if (shared !== undefined) throw new CheckFailure(`list shows two machines with the endpoint ${shared}`);
  for (const { ref } of items)
    if ((await bench.driver.get(ref)).answer === 'gone')
      throw new CheckFailure(`get says that ${ref} is gone, and list shows it`);
}
