import type { ObservedMachine, OwnerRef, VolumeDriver } from '../../../orchestrator/model/platform-driver.ts';
import { type Bench, CheckFailure, has, refused, same, show, TRIAL_ORDER, Untried } from './bench.ts';
import type { DriverCheck } from './check.ts';
import { NOTE } from './machines.ts';

type VolumeCheck = Omit<DriverCheck, 'run'> & {
  run: (bench: Bench, volumes: VolumeDriver) => Promise<void>;
};

const done = { outcome: 'done', value: null };

const checks: readonly VolumeCheck[] = [
  {
    id: 'volume-lifecycle',
    title: 'makes, lists and destroys volumes, each call repeated',
    why: 'Each call may come twice; a second volume would cost money without being recorded.',
    remedy: 'Make, list and destroy volumes by their ref; a repeated call succeeds.',
    async run(bench, volumes) {
      const ref = bench.volumeRef('v');
      same('get before the create', await attached(volumes, ref), 'gone');
      const made = await bench.createVolume(volumes, ref);
      same('create again', await bench.createVolume(volumes, ref), made);
      same('listed', await bench.listedVolumes(volumes), [made]);
      await destroyVolume(bench, volumes, ref);
      same('destroy again', await volumes.destroy(ref, null, TRIAL_ORDER), done);
      same(
        'destroy of a missing volume',
        await volumes.destroy(bench.volumeRef('none'), null, TRIAL_ORDER),
        done,
      );
      same('get after the destroy', await attached(volumes, ref), 'gone');
    },
  },
  {
    id: 'volume-crashes',
    title: 'resumes each call on a volume without its cookie',
    why: 'A crash loses the cookie.',
    remedy: 'Look for the volume and its attachment first in each call, and continue from their state.',
    async run(bench, volumes) {
      const ref = bench.volumeRef('v');
      const { ref: machine, host } = await machineAt(bench);
      const place = volumes.place === undefined ? {} : bound(bench, host);
      const spec = { ...bench.context.volumeSpec(ref), note: NOTE, ...place };
      const made = await bench.finishAfterCrash('volumes.create', (cookie) => volumes.create(spec, cookie));
      same('the note', made.note, bench.manifest.keepsNotes ? NOTE : undefined);
      await bench.finishAfterCrash('attach', (cookie) => volumes.attach(ref, machine, cookie));
      const [listed] = await bench.listedVolumes(volumes);
      if (listed === undefined) throw new CheckFailure('the volume is not listed');
      has('listed', listed, { ref, attachedTo: [machine], createdAt: made.createdAt });
      await bench.finishAfterCrash('detach', (cookie) => volumes.detach(ref, machine, cookie));
      same('attached to', await attached(volumes, ref), []);
      await bench.finishAfterCrash('volumes.destroy', (cookie) => volumes.destroy(ref, cookie, TRIAL_ORDER));
      same('get after the destroy', await attached(volumes, ref), 'gone');
    },
  },
  {
    id: 'volume-attach',
    title: 'attaches and detaches a volume, each call repeated',
    why: 'A repeated attach or detach succeeds: this is how Berth recovers from a lost answer.',
    remedy:
      'Attaching an attached volume and detaching a detached one succeed. Where attach_volume is cold, a running machine is a conflict.',
    async run(bench, volumes) {
      const ref = bench.volumeRef('v');
      const { host } = await bench.createVolume(volumes, ref);
      const machine = bench.ref('a');
      await bench.create(machine, bound(bench, host));
      const attach = (cookie: string | null) => volumes.attach(ref, machine, cookie);
      if (bench.manifest.attachVolume === 'cold') {
        refused('attach while the machine runs', await attach(null), 'conflict');
        await bench.stop(machine);
      }
      await bench.finish('attach', attach);
      await bench.finish('attach again', attach);
      same('attached to', await attached(volumes, ref), [machine]);
      const detach = (cookie: string | null) => volumes.detach(ref, machine, cookie);
      await bench.finish('detach', detach);
      await bench.finish('detach again', detach);
      same('attached to', await attached(volumes, ref), []);
    },
  },
  {
    id: 'volume-resize',
    title: 'grows a volume and never shrinks it, or declares that it cannot',
    why: 'Shrinking a volume loses data.',
    remedy: 'Grow to size_gb: answer done if the volume has that size, and invalid if it is larger.',
    async run(bench, volumes) {
      const ref = bench.volumeRef('v');
      const { sizeGb } = bench.context.volumeSpec(ref);
      const resize = (to: number) => (cookie: string | null) => volumes.resize(ref, to, cookie);
      refused('resize of a missing volume', await resize(sizeGb)(null));
      const made = await bench.createVolume(volumes, ref);
      if (bench.manifest.resizeVolume === 'none') {
        refused('resize', await resize(2 * sizeGb)(null), 'unsupported');
        return undefined;
      }
      const expected = made.sizeGb === undefined ? made : { ...made, sizeGb: 2 * sizeGb };
      same('resize', await bench.finishAfterCrash('resize', resize(2 * sizeGb)), expected);
      same('resize again', await resize(2 * sizeGb)(null), { outcome: 'done', value: expected });
      refused('resize to a smaller size', await resize(sizeGb)(null), 'invalid');
      same('get', await volumes.get(ref), { answer: 'observed', value: expected });
    },
  },
  {
    id: 'volume-resize-attached',
    title: 'resizes an attached volume, or refuses and changes nothing',
    why: 'The manifest says which, and the API relies on it.',
    remedy:
      'Say in resize_volume whether a volume grows while it is attached, and refuse it with conflict where not.',
    async run(bench, volumes) {
      const { resizeVolume } = bench.manifest;
      if (resizeVolume === 'none') throw new Untried('the manifest says that it cannot resize');
      const ref = bench.volumeRef('v');
      const machine = await attachedVolume(bench, volumes, ref);
      const to = 2 * bench.context.volumeSpec(ref).sizeGb;
      const resize = (cookie: string | null) => volumes.resize(ref, to, cookie);
      if (resizeVolume === 'attached') await bench.finish('resize', resize);
      else refused('resize while it is attached', await resize(null), 'conflict');
      same('attached to', await attached(volumes, ref), [machine]);
    },
  },
  {
    id: 'volume-usage',
    title: 'reports how much of its volumes is used, or declares that it cannot',
    why: 'The manifest says which, and users see the figure.',
    remedy: 'Answer `volumes.usage` if and only if the manifest says `volumeUsage`, with whole bytes.',
    async run(bench, volumes) {
      same('whether it reports the use', volumes.usage !== undefined, bench.manifest.volumeUsage === true);
      if (volumes.usage === undefined) return;
      const ref = bench.volumeRef('v');
      await bench.createVolume(volumes, ref);
      const listing = await volumes.usage();
      if (listing.answer === 'unknown') throw new CheckFailure(`the use is unknown: ${listing.reason}`);
      const { usedBytes = 0 } = listing.items.find((one) => one.ref === ref) ?? {};
      same('whether the bytes are a count', Number.isSafeInteger(usedBytes) && usedBytes >= 0, true);
    },
  },
  {
    id: 'volume-survives',
    title: 'keeps a volume when its machine is destroyed, and drops the attachment',
    why: 'Volumes are sold separately from machines.',
    remedy: 'Detach the volumes of a machine that is destroyed, and keep them.',
    async run(bench, volumes) {
      const ref = bench.volumeRef('v');
      await bench.destroy(await attachedVolume(bench, volumes, ref));
      same('attached to', await attached(volumes, ref), []);
    },
  },
  {
    id: 'volume-data',
    title: 'shows a volume to its machine, and keeps the data for the next machine',
    why: 'A recorded attachment does not prove that the guest has the disk.',
    remedy: 'Keep the data of a volume over detach and attach.',
    async run(bench, volumes) {
      const { guest, units } = bench.context;
      const disk = guest?.volume;
      if (disk === undefined) throw new Untried('this suite cannot see the disks of a machine');
      const isCold = bench.manifest.attachVolume === 'cold';
      const running = (ref: OwnerRef) => (isCold ? bench.start(ref) : bench.create(ref));
      const ref = bench.volumeRef('v');
      const first = await running(await attachedVolume(bench, volumes, ref));
      await bench.eventually(
        'a write to the volume',
        async () => void (await disk.write(first, ref, 'kept')),
      );
      if (isCold) await bench.stop(first.ref);
      await bench.finish('detach', (cookie) => volumes.detach(ref, first.ref, cookie));
      const host = await hostOf(volumes, ref);
      // The volume's host may have room for only one machine.
      if (units === 1 || host !== undefined) await bench.destroy(first.ref);
      const { ref: name } = await machineAt(bench, host, 'b');
      await bench.finish('attach to another machine', (cookie) => volumes.attach(ref, name, cookie));
      const second = await running(name);
      await bench.eventually('the volume in another machine', async () => {
        const text = await disk.read(second, ref);
        return text === 'kept' ? undefined : `expected "kept" on it, got ${show(text)}`;
      });
    },
  },
  {
    id: 'volume-copy',
    title: 'copies a volume under another name, and keeps the original',
    why: 'The copy replaces the volume only when it is complete; until then the original is the only data.',
    remedy:
      'Make the copy under the ref of its spec, keep the original, and answer done when it is complete or already exists.',
    async run(bench, volumes) {
      const { copy } = volumes;
      if (copy === undefined) throw new Untried('the driver copies no volumes');
      const ref = bench.volumeRef('v');
      const original = await bench.createVolume(volumes, ref);
      const { host } = original;
      const copyTo = (name: OwnerRef) => (cookie: string | null) =>
        copy.call(
          volumes,
          ref,
          { ...bench.context.volumeSpec(name), ...(host !== undefined && { host }) },
          cookie,
        );
      let copied = bench.volumeRef('v-g1');
      // A driver that cannot tell whether a copy is complete fails with `unfinished`. The volume is then removed and
      // copied under the next name.
      const interrupted = await bench
        .finishAfterCrash('volumes.copy', copyTo(copied))
        .catch((error: Error) =>
          / failed with unfinished /.test(error.message) ? undefined : Promise.reject(error),
        );
      if (interrupted === undefined) {
        await destroyVolume(bench, volumes, copied);
        copied = bench.volumeRef('v-g2');
      }
      const repeated = copyTo(copied);
      const made = interrupted ?? (await bench.finish('volumes.copy', repeated));
      has('the copy', made, { ref: copied, sizeGb: original.sizeGb, attachedTo: [] });
      same('the repeated copy', await bench.finish('volumes.copy again', repeated), made);
      same('get of the copy', await volumes.get(copied), { answer: 'observed', value: made });
      same('get of the original', await volumes.get(ref), { answer: 'observed', value: original });
    },
  },
  {
    id: 'volume-destroy-attached',
    title: 'destroys an attached volume',
    why: 'A stale attachment on the platform must not keep a volume for ever.',
    remedy: 'Detach a volume that is destroyed.',
    async run(bench, volumes) {
      const ref = bench.volumeRef('v');
      await attachedVolume(bench, volumes, ref);
      await destroyVolume(bench, volumes, ref);
      same('get', await attached(volumes, ref), 'gone');
    },
  },
];

export const volumeChecks: readonly DriverCheck[] = checks.map((check) => ({
  ...check,
  async run(bench: Bench) {
    const { volumes } = bench.driver;
    if (volumes === undefined) throw new Untried('the manifest says that there are no volumes');
    await check.run(bench, volumes);
  },
}));

async function attached(volumes: VolumeDriver, ref: OwnerRef): Promise<OwnerRef[] | string> {
  const presence = await volumes.get(ref);
  return presence.answer === 'observed' ? presence.value.attachedTo : presence.answer;
}

/** If machines and volumes are bound to hosts, a volume is attached to a machine on its host. */
function bound({ driver }: Bench, host: string | undefined): { host?: string } {
  return driver.place === undefined || host === undefined ? {} : { host };
}

async function hostOf(volumes: VolumeDriver, ref: OwnerRef): Promise<string | undefined> {
  const presence = await volumes.get(ref);
  return presence.answer === 'observed' ? presence.value.host : undefined;
}

async function machineAt(bench: Bench, host?: string, name = 'a'): Promise<ObservedMachine> {
  const machine = await bench.create(bench.ref(name), bound(bench, host));
  if (bench.manifest.attachVolume === 'cold') await bench.stop(machine.ref);
  return machine;
}

/** Makes the volume, attaches it to a new machine, and returns that machine. */
async function attachedVolume(bench: Bench, volumes: VolumeDriver, ref: OwnerRef): Promise<OwnerRef> {
  const { host } = await bench.createVolume(volumes, ref);
  const { ref: machine } = await machineAt(bench, host);
  await bench.finish('attach', (cookie) => volumes.attach(ref, machine, cookie));
  return machine;
}

function destroyVolume(bench: Bench, volumes: VolumeDriver, ref: OwnerRef): Promise<null> {
  return bench.finish('volumes.destroy', (cookie) => volumes.destroy(ref, cookie, TRIAL_ORDER));
}
