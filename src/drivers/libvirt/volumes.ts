import { z } from 'zod';
import type {
  Listing,
  ObservedVolume,
  OwnerRef,
  Presence,
  Step,
  VolumeDriver,
  VolumeSpec,
} from '../../orchestrator/model/platform-driver.ts';
import type { Platform } from './create.ts';
import { type DomainDisk, toDiskXml } from './domain-xml.ts';
import { toFailure, VirshError } from './errors.ts';
import { type FoundMachine, type Member, readMachine } from './fleet.ts';
import { type HostDomain, listDomains } from './hosts/host-view.ts';
import { deleteVolume, writeFile } from './pool.ts';
import { done, pending, refused } from './translate.ts';
import { childrenOf, descend, parseXml, textOf } from './xml.ts';

const POLL_MS = 500;
const GIB = 1024 ** 3;
/** What virtio-blk shows of a serial. */
const SERIAL_CHARACTERS = 20;

/** A volume is two files: the disk, and the mark without which a disk is another's. */
const diskFile = (ref: OwnerRef): string => `${ref}.volume`;
const markFile = (ref: OwnerRef): string => `${ref}.mark`;

const markSchema = z.object({
  createdBy: z.literal('berth'),
  ref: z.string(),
  createdAt: z.number(),
  note: z.string(),
});
type VolumeMark = z.infer<typeof markSchema>;

/** A volume as its host has it. */
interface FoundVolume {
  host: Member;
  path: string;
  sizeGb: number;
  domains: readonly HostDomain[];
  observed: ObservedVolume;
}

type Search =
  | { answer: 'found'; volume: FoundVolume }
  | { answer: 'gone' }
  | { answer: 'unknown'; reason: string };

/** Volumes are qcow2 files in the pool of one host: a machine of another host cannot have them. */
export function createVolumes(platform: Platform): VolumeDriver {
  const { fleet, clock } = platform;
  // A mark is never changed, so it is read once.
  const marks = new Map<string, VolumeMark>();

  async function listHost(host: Member): Promise<FoundVolume[]> {
    const { virsh, options } = host;
    const names = await namesOf(host);
    const refs = names
      .filter((name) => /^[a-z0-9][a-z0-9-]*\.volume$/.test(name))
      .map((name) => name.slice(0, -'.volume'.length))
      .filter((ref) => names.includes(markFile(ref)));
    if (refs.length === 0) return [];
    const commands = refs.map((ref) => `vol-dumpxml --pool ${options.pool} ${diskFile(ref)}`);
    const [domains, text] = await Promise.all([
      listDomains(host),
      virsh([[...commands, 'hostname'].join('; ')]),
    ]);
    const [, documents = ''] = /^([\s\S]*<\/volume>)?/.exec(text) ?? [];
    const volumes = childrenOf(parseXml(`<volumes>${documents}</volumes>`));
    const told = volumes.map((volume) => textOf(descend(volume, 'name')).slice(0, -'.volume'.length));
    const untold = refs.filter((ref) => !told.includes(ref)).map(diskFile);
    // What does not seem to be there would be made anew, or said to be gone.
    const still = untold.length === 0 ? [] : (await namesOf(host)).filter((name) => untold.includes(name));
    if (still.length > 0) throw new VirshError('busy', `${host.name} does not tell of ${still[0]}`);
    const found: FoundVolume[] = [];
    for (const [index, volume] of volumes.entries()) {
      const ref = told[index] ?? '';
      const mark = await readMark(host, ref);
      if (mark === undefined) continue;
      const path = textOf(descend(volume, 'target', 'path'));
      const sizeGb = Number(textOf(descend(volume, 'capacity'))) / GIB;
      const attachedTo = domains
        .filter(({ mark: own, disks }) => own !== undefined && disks.some((disk) => disk.path === path))
        .map(({ name }) => name);
      const { createdAt, note } = mark;
      found.push({ host, path, sizeGb, domains, observed: { ref, attachedTo, createdAt, sizeGb, note } });
    }
    return found;
  }

  async function readMark(host: Member, ref: OwnerRef): Promise<VolumeMark | undefined> {
    const key = `${host.name}/${ref}`;
    const known = marks.get(key);
    if (known !== undefined) return known;
    const { virshBytes, options } = host;
    try {
      const bytes = await virshBytes(['vol-download', '--pool', options.pool, markFile(ref), '/dev/stdout']);
      const mark = markSchema.parse(JSON.parse(bytes.toString('utf8')));
      if (mark.ref !== ref) return undefined;
      marks.set(key, mark);
      return mark;
    } catch (error) {
      // Not there, or not written to its end.
      const isNone = error instanceof VirshError && error.problem === 'no_volume';
      if (isNone || error instanceof SyntaxError || error instanceof z.ZodError) return undefined;
      throw error;
    }
  }

  async function searchAll(): Promise<{ volumes: FoundVolume[]; unknown: string | undefined }> {
    const answers = await Promise.allSettled(fleet.hosts.map(listHost));
    const volumes: FoundVolume[] = [];
    let unknown: string | undefined;
    for (const answer of answers) {
      if (answer.status === 'fulfilled') volumes.push(...answer.value);
      else if (answer.reason instanceof VirshError) unknown ??= answer.reason.message;
      else throw answer.reason;
    }
    return { volumes, unknown };
  }

  async function find(ref: OwnerRef): Promise<Search> {
    const { volumes, unknown } = await searchAll();
    const volume = volumes.find(({ observed }) => observed.ref === ref);
    if (volume !== undefined) return { answer: 'found', volume };
    return unknown === undefined ? { answer: 'gone' } : { answer: 'unknown', reason: unknown };
  }

  async function findOrFail(ref: OwnerRef): Promise<FoundVolume | Step<never>> {
    const search = await find(ref);
    if (search.answer === 'found') return search.volume;
    if (search.answer === 'unknown') throw new VirshError('unreachable', search.reason);
    return refused('gone', `no host has the volume ${ref}`);
  }

  /** The emptiest pool of the datacenter. */
  async function hostFor({ datacenter, sizeGb }: VolumeSpec): Promise<Member | undefined> {
    const hosts = fleet.hosts.filter(({ options }) => options.datacenter === datacenter && !options.cordoned);
    const free = await Promise.allSettled(hosts.map(freeGb));
    const [best] = hosts
      .map((host, index) => ({ host, freeGb: free[index]?.status === 'fulfilled' ? free[index].value : -1 }))
      .filter((one) => one.freeGb >= sizeGb)
      .toSorted((a, b) => b.freeGb - a.freeGb);
    return best?.host;
  }

  async function create(spec: VolumeSpec): Promise<Step<ObservedVolume>> {
    const search = await find(spec.ref);
    if (search.answer === 'unknown') throw new VirshError('unreachable', search.reason);
    if (search.answer === 'found') return done(search.volume.observed);
    const host = await hostFor(spec);
    if (host === undefined)
      return refused('capacity', `no host in ${spec.datacenter} has ${spec.sizeGb} GB of disk left`);
    const mark: VolumeMark = {
      createdBy: 'berth',
      ref: spec.ref,
      createdAt: clock.now(),
      note: spec.note,
    };
    if ((await namesOf(host)).includes(diskFile(spec.ref)))
      return refused('already_exists', `${diskFile(spec.ref)} is on ${host.name}, and it is not Berth's`);
    await writeFile(host, markFile(spec.ref), Buffer.from(JSON.stringify(mark)));
    const size = `${Math.ceil(spec.sizeGb * 1024)}M`;
    await host.virsh([
      ...['vol-create-as', host.options.pool, diskFile(spec.ref), size, '--format', 'qcow2'],
    ]);
    const made = await find(spec.ref);
    return made.answer === 'found' ? done(made.volume.observed) : pending(host.name, POLL_MS);
  }

  async function attach(ref: OwnerRef, machineRef: OwnerRef): Promise<Step<null>> {
    const volume = await findOrFail(ref);
    if ('outcome' in volume) return volume;
    const { observed, host } = volume;
    if (observed.attachedTo.includes(machineRef)) return done(null);
    if (observed.attachedTo.length > 0)
      return refused('conflict', `${ref} is attached to ${observed.attachedTo.join(', ')}`);
    const search = await fleet.find(machineRef);
    if (search.answer === 'unknown') throw new VirshError('unreachable', search.reason);
    if (search.answer === 'gone') return refused('gone', `no host has ${machineRef}`);
    const { machine } = search;
    if (machine.host.name !== host.name)
      return refused(
        'invalid',
        `the volume is on the host ${host.name} and the machine on ${machine.host.name}: a volume cannot leave its host`,
      );
    const target = freeTarget(machine);
    if (target === undefined) return refused('invalid', `${machineRef} has as many disks as it can have`);
    const disk: DomainDisk = { path: volume.path, format: 'qcow2', target, serial: serialOf(ref) };
    await host.virsh(['attach-device', '--persistent', '--', machineRef, '/dev/stdin'], {
      input: toDiskXml(disk),
    });
    return done(null);
  }

  async function detach(ref: OwnerRef, machineRef: OwnerRef): Promise<Step<null>> {
    const volume = await findOrFail(ref);
    if ('outcome' in volume)
      return volume.outcome === 'failed' && volume.code === 'gone' ? done(null) : volume;
    return detachFrom(volume, machineRef);
  }

  async function detachFrom({ host, path }: FoundVolume, machineRef: OwnerRef): Promise<Step<null>> {
    const machine = await readMachine(host, machineRef);
    if (machine === undefined) return done(null);
    const places = [
      { disks: machine.domain.disks, flag: '--config' },
      ...(machine.running ? [{ disks: machine.live.disks, flag: '--live' }] : []),
    ];
    const attached = places.flatMap(({ disks, flag }) =>
      disks.flatMap((disk) => (disk.path === path ? [{ target: disk.target, flag }] : [])),
    );
    if (attached.length === 0) return done(null);
    // A guest that runs answers in its own time; where it was asked already, libvirt refuses to ask again.
    for (const { target, flag } of attached)
      await host.virsh(['detach-disk', flag, '--', machineRef, target]).catch(unlessBusy);
    return pending(host.name, POLL_MS);
  }

  async function resize(ref: OwnerRef, sizeGb: number): Promise<Step<ObservedVolume>> {
    const volume = await findOrFail(ref);
    if ('outcome' in volume) return volume;
    const { host, observed, path, domains } = volume;
    if (volume.sizeGb > sizeGb) return refused('invalid', `${ref} has ${volume.sizeGb} GB already`);
    if (volume.sizeGb === sizeGb) return done(observed);
    const size = `${Math.ceil(sizeGb * 1024)}M`;
    const running = domains.find((domain) => domain.running && observed.attachedTo.includes(domain.name));
    if (running === undefined)
      await host.virsh(['vol-resize', '--pool', host.options.pool, '--', diskFile(ref), size]);
    else {
      await host.virsh(['blockresize', '--', running.name, path, size]);
      await host.virsh(['pool-refresh', host.options.pool]);
    }
    const resized = await find(ref);
    return resized.answer === 'found' && resized.volume.sizeGb >= sizeGb
      ? done(resized.volume.observed)
      : pending(host.name, POLL_MS);
  }

  async function destroy(ref: OwnerRef): Promise<Step<null>> {
    const search = await find(ref);
    if (search.answer === 'unknown') throw new VirshError('unreachable', search.reason);
    if (search.answer === 'found') {
      const { volume } = search;
      for (const machine of volume.observed.attachedTo) {
        const step = await detachFrom(volume, machine);
        if (step.outcome !== 'done') return step;
      }
    }
    for (const host of fleet.hosts) {
      // A disk without our mark is another's.
      const isAnothers =
        (await readMark(host, ref)) === undefined && (await namesOf(host)).includes(diskFile(ref));
      if (isAnothers) continue;
      await deleteVolume(host, diskFile(ref));
      await deleteVolume(host, markFile(ref));
      marks.delete(`${host.name}/${ref}`);
    }
    return done(null);
  }

  const alone = <T>(ref: OwnerRef, task: () => Promise<Step<T>>): Promise<Step<T>> =>
    fleet.alone(`volume ${ref}`, () => task().catch(toFailure));
  return {
    async get(ref): Promise<Presence<ObservedVolume>> {
      const search = await find(ref);
      return search.answer === 'found' ? { answer: 'observed', value: search.volume.observed } : search;
    },
    async list(): Promise<Listing<ObservedVolume>> {
      const { volumes, unknown } = await searchAll();
      if (unknown !== undefined) return { answer: 'unknown', reason: unknown };
      return { answer: 'listed', items: volumes.map(({ observed }) => observed) };
    },
    create: (spec) => alone(spec.ref, () => create(spec)),
    attach: (ref, machine) => alone(ref, () => fleet.alone(machine, () => attach(ref, machine))),
    detach: (ref, machine) => alone(ref, () => fleet.alone(machine, () => detach(ref, machine))),
    resize: (ref, sizeGb) => alone(ref, () => resize(ref, sizeGb)),
    destroy: (ref) => alone(ref, () => destroy(ref)),
  };
}

/** What the guest finds the disk by: `/dev/disk/by-id/virtio-SERIAL`. The id of the volume, as far as it shows. */
function serialOf(ref: OwnerRef): string {
  return ref.replace(/^berth-/, '').slice(0, SERIAL_CHARACTERS);
}

async function namesOf({ virsh, options }: Member): Promise<string[]> {
  const lines = (await virsh(['vol-list', '--pool', options.pool])).split('\n');
  return lines.flatMap((line) => line.trim().split(/\s+/)[0] || []);
}

async function freeGb({ virsh, options }: Member): Promise<number> {
  const info = await virsh(['pool-info', '--bytes', options.pool]);
  return Number(/^Available:\s+(\d+)/m.exec(info)?.[1] ?? 0) / GIB;
}

function freeTarget({ domain, live }: FoundMachine): string | undefined {
  const taken = new Set([...domain.disks, ...live.disks].map(({ target }) => target));
  return [...'cdefghijklmnopqrstuvwxyz'].map((letter) => `vd${letter}`).find((name) => !taken.has(name));
}

function unlessBusy(error: unknown): void {
  if (error instanceof VirshError && error.problem !== 'unreachable' && error.problem !== 'refused') return;
  throw error;
}
