import { idOf } from '../../orchestrator/model/attempt.ts';
import type {
  Leftover,
  Listing,
  ObservedVolume,
  OwnerRef,
  Presence,
  Step,
  VolumeDriver,
  VolumeSpec,
  VolumeUse,
} from '../../orchestrator/model/platform-driver.ts';
import { done, failed, pending } from '../../platform-model/steps.ts';
import type { Change } from './change.ts';
import { unlessSilent } from './destroy.ts';
import { type DomainDisk, type HostDomain, isMachine, toDiskXml } from './domain-xml.ts';
import { isHostFailure, isRefusal, unknownOf, VirshError } from './errors.ts';
import { type FoundMachine, type Member, readMachine } from './fleet.ts';
import { listDomains } from './hosts/domains.ts';
import { placeVolume } from './placement.ts';
import { changing, type Platform, type VolumeMethod } from './platform.ts';
import { deleteFile, listFiles, writeFile } from './pool.ts';
import { diskFile, type FoundVolume, markFile, type VolumeMark, volumesIn } from './volume-reader.ts';

const POLL_MS = 500;
/** Length of a serial that virtio-blk shows. */
const SERIAL_CHARACTERS = 20;
/** A create writes the mark before the disk. A mark that is alone for longer is a leftover. */
const CREATE_WITHIN_MS = 60 * 60_000;

/** Volumes are qcow2 files in the pool of one host. Machines on other hosts cannot attach them. */
export function volumesOf(platform: Platform): VolumeDriver {
  const { fleet } = platform;
  const volume = changing(platform, 'volume');
  return {
    get: (ref) => getVolume(platform, ref).catch(unknownOf),
    list: () => listVolumes(platform),
    usage: () => readUsage(platform),
    place: (spec, avoidHosts) => placeVolume(platform, spec, avoidHosts),
    create: (spec, cookie, call) =>
      volume(spec.ref, cookie, call, (within) => createVolume(within, spec, cookie)),
    attach: (ref, machine, cookie, call) =>
      volume(ref, cookie, call, (within) =>
        fleet.alone(machine, () => attachVolume(within, ref, machine, cookie)),
      ),
    detach: (ref, machine, cookie, call) =>
      volume(ref, cookie, call, (within) =>
        fleet.alone(machine, () => detachVolume(within, ref, machine, cookie)),
      ),
    resize: (ref, sizeGb, cookie, call) =>
      volume(ref, cookie, call, (within) => resizeVolume(within, ref, sizeGb, cookie)),
    destroy: (ref, cookie, order, call) =>
      volume(ref, cookie, call, (within) => destroyVolume(within, ref, cookie, order)),
  };
}

async function getVolume(platform: Platform, ref: OwnerRef): Promise<Presence<ObservedVolume>> {
  const search = await platform.volumes.searchAll();
  const { hosts, reason, found } = search;
  const volume = volumesIn(search).find(({ observed }) => observed.ref === ref);
  if (volume !== undefined) return { answer: 'observed', value: volume.observed };
  const unmarked = found.find(({ loose }) => loose.some(({ name }) => name === diskFile(ref)));
  if (unmarked !== undefined)
    return {
      answer: 'unknown',
      reason: `${unmarked.host.name} has ${diskFile(ref)} without ${markFile(ref)}: restore that file, or delete the volume, which removes ${diskFile(ref)}`,
    };
  return reason === undefined ? { answer: 'gone', hosts } : { answer: 'unknown', reason, hosts };
}

async function readUsage(platform: Platform): Promise<Listing<VolumeUse>> {
  const search = await platform.volumes.searchAll();
  const items = volumesIn(search).flatMap(({ observed: { ref }, usedBytes }) =>
    usedBytes === undefined ? [] : [{ ref, usedBytes }],
  );
  return { answer: 'listed', items, hosts: search.hosts };
}

async function listVolumes(platform: Platform): Promise<Listing<ObservedVolume>> {
  const search = await platform.volumes.searchAll().catch(unknownOf);
  if ('answer' in search) return search;
  const { hosts, reason, found } = search;
  if (reason !== undefined && hosts.answered.length === 0) return { answer: 'unknown', reason };
  const leftovers: Leftover[] = [];
  for (const { host, loose } of found)
    for (const { ref, name } of loose)
      if (await isLeftover(platform, host, ref, name)) leftovers.push({ ref, host: host.name, detail: name });
  return { answer: 'listed', items: volumesIn(search).map(({ observed }) => observed), leftovers, hosts };
}

async function isLeftover(platform: Platform, host: Member, ref: OwnerRef, name: string): Promise<boolean> {
  if (idOf(ref) === ref) return false;
  if (name === diskFile(ref)) return true;
  const mark = await platform.volumes.readMark(host, ref);
  return mark !== undefined && mark.createdAt + CREATE_WITHIN_MS < platform.clock.now();
}

async function findVolume(platform: Platform, ref: OwnerRef): Promise<FoundVolume | Step<never>> {
  const search = await platform.volumes.searchAll();
  const volume = volumesIn(search).find(({ observed }) => observed.ref === ref);
  if (volume !== undefined) return volume;
  if (search.reason !== undefined) throw new VirshError('unreachable', search.reason);
  return failed('gone', `no host has the volume ${ref}`);
}

const createVolume: VolumeMethod<'create'> = async (platform, spec, cookie) => {
  const { change } = platform;
  const name = spec.host ?? cookie ?? (await firstHost(platform, spec));
  if (typeof name !== 'string') return name;
  const host = platform.fleet.hosts.find((one) => one.name === name);
  if (host === undefined) return failed('capacity', `the platform has no host ${name}`);
  const { volumes, loose } = await platform.volumes.listHost(host);
  const made = volumes.find(({ observed }) => observed.ref === spec.ref);
  if (made !== undefined) return done(made.observed);
  const { ref, note, sizeGb } = spec;
  const mark: VolumeMark = { createdBy: 'berth', ref, createdAt: platform.clock.now(), note };
  if (loose.some((file) => file.name === diskFile(ref)))
    return failed('already_exists', `${diskFile(ref)} is on ${name}, and it is not Berth's`);
  await writeFile(change, host, markFile(ref), Buffer.from(JSON.stringify(mark)));
  const size = `${Math.ceil(sizeGb * 1024)}M`;
  const { pool } = host.options;
  await change.virsh(host, ['vol-create-as', pool, diskFile(ref), size, '--format', 'qcow2']);
  const after = (await platform.volumes.listHost(host)).volumes.find(({ observed }) => observed.ref === ref);
  return after === undefined ? pending(name, POLL_MS) : done(after.observed);
};

/** Chooses a host if none is given: the one that already has the volume, or the best one. */
async function firstHost(platform: Platform, spec: VolumeSpec): Promise<string | Step<never>> {
  const search = await platform.volumes.searchAll();
  if (search.reason !== undefined) throw new VirshError('unreachable', search.reason);
  const made = volumesIn(search).find(({ observed }) => observed.ref === spec.ref);
  if (made !== undefined) return made.host.name;
  const placing = await placeVolume(platform, spec);
  if (placing.answer === 'unknown') return failed('transient', placing.reason);
  if (placing.answer === 'refused') return failed(placing.code, placing.detail);
  return placing.hosts[0]?.host ?? failed('capacity', 'no host has room');
}

const attachVolume: VolumeMethod<'attach'> = async (platform, ref, machineRef, cookie) => {
  const { change } = platform;
  const volume = await findVolume(platform, ref);
  if ('outcome' in volume) return volume;
  const { observed, host } = volume;
  // A detach from an earlier call may have arrived since the read.
  if (observed.attachedTo.includes(machineRef))
    return (await change.fence(host)) ? attachVolume(platform, ref, machineRef, cookie) : done(null);
  if (observed.attachedTo.length > 0)
    return failed('conflict', `${ref} is attached to ${observed.attachedTo.join(', ')}`);
  const search = await platform.fleet.find(machineRef);
  if (search.answer === 'unknown') throw new VirshError('unreachable', search.reason);
  if (search.answer === 'gone') return failed('gone', `no host has ${machineRef}`);
  const { machine } = search;
  if (machine.host.name !== host.name)
    return failed(
      'elsewhere',
      `the volume is on the host ${host.name} and the machine on ${machine.host.name}: a volume cannot leave its host`,
    );
  const target = freeTarget(machine);
  if (target === undefined) return failed('invalid', `${machineRef} has the maximum number of disks`);
  const disk: DomainDisk = { path: volume.path, format: 'qcow2', target, serial: serialOf(ref) };
  await change.virsh(host, ['attach-device', '--persistent', '--', machine.domain.uuid, '/dev/stdin'], {
    input: toDiskXml(disk),
  });
  return done(null);
};

const detachVolume: VolumeMethod<'detach'> = async (platform, ref, machineRef) => {
  const volume = await findVolume(platform, ref);
  if ('outcome' in volume) return volume.outcome === 'failed' && volume.code === 'gone' ? done(null) : volume;
  return detachFrom(platform.change, volume, machineRef);
};

async function detachFrom(
  change: Change,
  volume: Pick<FoundVolume, 'host' | 'path'>,
  machineRef: OwnerRef,
): Promise<Step<null>> {
  const { host, path } = volume;
  const machine = await readMachine(host, machineRef);
  const flags = [
    ...(has(machine?.domain, path) ? ['--config'] : []),
    ...(machine?.running && has(machine.live, path) ? ['--live'] : []),
  ];
  // An attach from an earlier call may have arrived since the read.
  if (machine === undefined || flags.length === 0)
    return (await change.fence(host)) ? detachFrom(change, volume, machineRef) : done(null);
  // A running guest takes its time to release a disk. Libvirt refuses a second request, which is ignored.
  for (const flag of flags)
    await change.virsh(host, ['detach-disk', flag, '--', machine.domain.uuid, path]).catch(unlessBusy);
  return pending(host.name, POLL_MS);
}

const resizeVolume: VolumeMethod<'resize'> = async (platform, ref, sizeGb) => {
  const { change } = platform;
  const volume = await findVolume(platform, ref);
  if ('outcome' in volume) return volume;
  const { host, observed, path, domains } = volume;
  if (volume.sizeGb > sizeGb) return failed('invalid', `${ref} already has ${volume.sizeGb} GB`);
  if (volume.sizeGb === sizeGb) return done(observed);
  const size = `${Math.ceil(sizeGb * 1024)}M`;
  const running = domains.find((domain) => domain.running && isMachine(domain) && has(domain, path));
  const { pool } = host.options;
  if (running === undefined)
    await change.virsh(host, ['vol-resize', '--pool', pool, '--', diskFile(ref), size]);
  else {
    await change.virsh(host, ['blockresize', '--', running.uuid, path, size]);
    await host.virsh(['pool-refresh', pool]);
  }
  const resized = (await platform.volumes.listHost(host)).volumes.find((one) => one.observed.ref === ref);
  return resized !== undefined && resized.sizeGb >= sizeGb
    ? done(resized.observed)
    : pending(host.name, POLL_MS);
};

const destroyVolume: VolumeMethod<'destroy'> = async ({ volumes: reader, change }, ref, _cookie, order) => {
  const { found, hosts } = await reader.searchAll();
  let wasFound = false;
  for (const { host, volumes } of found) {
    const names = await listFiles(host, change);
    const left = [diskFile(ref), markFile(ref)].filter((name) => names.includes(name));
    reader.forget(host, ref);
    if (left.length === 0) continue;
    wasFound = true;
    const volume = volumes.find(({ observed }) => observed.ref === ref);
    const step = await detachAll(change, host, ref, volume?.domains ?? []);
    if (step.outcome !== 'done') return step;
    for (const name of left) await deleteFile(change, host, name, order);
  }
  return wasFound ? done(null) : unlessSilent(ref, hosts.silent);
};

/** Detaches the volume from running and stored domains. Domains that are not machines of Berth are not changed. */
async function detachAll(
  change: Change,
  host: Member,
  ref: OwnerRef,
  live: readonly HostDomain[],
): Promise<Step<null>> {
  for (const domain of [...live, ...(await listDomains(host, 'stored'))]) {
    const path = domain.disks.find((disk) => disk.path?.endsWith(`/${diskFile(ref)}`))?.path;
    if (path === undefined) continue;
    if (!isMachine(domain) || domain.mark === undefined)
      return failed(
        'conflict',
        `${domain.name} on ${host.name}, which is not a machine of Berth, uses ${path}: detach it there`,
      );
    const step = await detachFrom(change, { host, path }, domain.mark.ref);
    if (step.outcome !== 'done') return step;
  }
  return done(null);
}

const has = (domain: Pick<HostDomain, 'disks'> | undefined, path: string): boolean =>
  domain?.disks.some((disk) => disk.path === path) === true;

/**
 * The serial by which the guest finds the disk: `/dev/disk/by-id/virtio-SERIAL`. It is the shortened id of the volume.
 */
const serialOf = (ref: OwnerRef): string => idOf(ref).slice(0, SERIAL_CHARACTERS);

function freeTarget({ domain, live }: FoundMachine): string | undefined {
  const taken = new Set([...domain.disks, ...live.disks].map(({ target }) => target));
  return [...'cdefghijklmnopqrstuvwxyz'].map((letter) => `vd${letter}`).find((name) => !taken.has(name));
}

function unlessBusy(error: unknown): void {
  if (error instanceof VirshError && !isHostFailure(error) && !isRefusal(error)) return;
  throw error;
}
