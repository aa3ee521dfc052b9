import { basename } from 'node:path';
import type { ObservedMachine, OwnerRef, Step } from '../../orchestrator/model/platform-driver.ts';
import { finishBoot, type Platform, powerOn } from './create.ts';
import { remark } from './definition.ts';
import { tellsNothing, VirshError } from './errors.ts';
import { type FoundMachine, hasDomain, readMachine } from './fleet.ts';
import { functionsOf, markGpus, sweepHost } from './gpus/machine-gpus.ts';
import { runHostScript } from './hosts/host-facts.ts';
import { readHostView } from './hosts/host-view.ts';
import { chooseGpus } from './hosts/place.ts';
import { settleClaim } from './hosts/settle-claim.ts';
import { deleteFiles, deleteVolume, filesOf, foreignFilesOf, isDiskLost } from './pool.ts';
import { done, pending, refused, toObserved } from './translate.ts';

const POLL_MS = 1_000;
/** A guest that is still booting does not hear the first press of its power button. */
const PRESS_EVERY_MS = 5_000;

type Found = { machine: FoundMachine } | { step: Step<never> };

async function findOrFail({ fleet }: Platform, ref: OwnerRef): Promise<Found> {
  const search = await fleet.find(ref);
  if (search.answer === 'found') return { machine: search.machine };
  if (search.answer === 'gone') return { step: refused('gone', `no host has ${ref}`) };
  throw new VirshError('unreachable', search.reason);
}

/** Presses its power button, again and again, and cuts its power when the grace is over. The cookie is `since:presses`. */
export async function stopMachine(
  platform: Platform,
  ref: OwnerRef,
  cookie: string | null,
): Promise<Step<ObservedMachine>> {
  const found = await findOrFail(platform, ref);
  if ('step' in found) return found.step;
  const { machine } = found;
  const { host, domain } = machine;
  if (!machine.running) {
    const claim = domain.mark.holds === true ? 'held' : 'released';
    if (domain.mark.claim !== claim || domain.mark.memo !== undefined)
      await (claim === 'held' ? remark(machine, { claim, memo: undefined }) : release(platform, machine));
    const stopped = await readMachine(host, ref);
    return stopped === undefined ? refused('gone', `no host has ${ref}`) : done(await toObserved(stopped));
  }
  const now = platform.clock.now();
  if (machine.pause?.passes === false) return stopPaused(machine, cookie, now);
  const [since = now, presses = 0] = cookie?.split(':').map(Number) ?? [];
  if (now - since >= platform.config.stop_grace_s * 1000) {
    await cutPower(machine);
    return pending(`${since}:${presses}`, 1);
  }
  if (now - since < presses * PRESS_EVERY_MS) return pending(`${since}:${presses}`, POLL_MS);
  await unlessOff(host.virsh(['shutdown', '--mode', 'acpi', '--', ref]));
  return pending(`${since}:${presses + 1}`, POLL_MS);
}

/** Halted, it does not hear its power button: it is let go on for that. What is halted again is cut off. */
async function stopPaused(machine: FoundMachine, cookie: string | null, now: number): Promise<Step<never>> {
  if (cookie === null && (await resumes(machine))) return pending(`${now}:0`, 1);
  await cutPower(machine);
  return pending(cookie ?? `${now}:0`, 1);
}

/** A machine that released its part of the host when it stopped needs room for it again. */
export async function startMachine(platform: Platform, ref: OwnerRef): Promise<Step<ObservedMachine>> {
  const found = await findOrFail(platform, ref);
  if ('step' in found) return found.step;
  const { machine } = found;
  const { host, domain } = machine;
  if (machine.running) {
    if (machine.pause?.passes === false) await resumes(machine);
    return finishBoot(host, ref);
  }
  if (await isDiskLost(host, ref, domain.disks[0]?.path))
    return refused('disk_lost', `${filesOf(ref).disk} is not in the pool of ${host.name}`);
  if (domain.mark.claim === 'released')
    return platform.fleet.alone('place', () => reclaim(platform, machine));
  if (domain.mark.claim === 'open') {
    const claim = settleClaim(await readHostView(host, host.shell, platform.config.gpu_types), ref);
    if (claim.verdict === 'wait') return pending(host.name, POLL_MS);
    const taken = claim.verdict === 'held' ? await markGpus(host, ref, domain.mark.gpus) : claim.gpu;
    if (claim.verdict === 'lost' || taken !== undefined) {
      await release(platform, machine);
      // Others were before it: it chooses again, of what is left.
      if (claim.verdict === 'held' || taken !== undefined) return pending(host.name, 1);
      return refused('capacity', `${host.name}, which has its disk, is full: ${claim.reason}`);
    }
    await remark(machine, { claim: 'held' });
  }
  await powerOn(host, ref);
  return finishBoot(host, ref);
}

/** Gives its part of the host back but for its disk, and its GPUs to whoever is next. */
async function release({ config, log }: Platform, machine: FoundMachine): Promise<void> {
  const hadGpus = machine.domain.mark.gpus.length > 0;
  await remark(machine, { claim: 'released', memo: undefined, gpus: [] }, hadGpus ? [] : undefined);
  if (hadGpus) await sweepHost(machine.host, config.gpu_types, log);
}

/** Claims its part again, with GPUs that may be others than it had: none of the first machine's data is on either. */
async function reclaim({ config }: Platform, machine: FoundMachine): Promise<Step<never>> {
  const { host, domain } = machine;
  const { gpuCount, gpuType } = domain.mark;
  if (gpuCount === 0) await remark(machine, { claim: 'open' });
  else {
    const view = await readHostView(host, host.shell, config.gpu_types);
    const gpus = chooseGpus(view, { gpuCount, gpuType });
    if (gpus.length < gpuCount)
      return refused(
        'capacity',
        `${host.name}, which has its disk, has ${gpus.length} free ${gpuType} of ${gpuCount}`,
      );
    await remark(machine, { claim: 'open', gpus }, functionsOf(view, gpus));
  }
  return pending(host.name, 1);
}

/**
 * Cuts the power and gives it again. The id is written into the definition first, which a machine that runs has only
 * after it was started again: what runs with the id has been restarted, and what runs without it has not.
 */
export async function restartMachine(
  platform: Platform,
  ref: OwnerRef,
  id: string,
): Promise<Step<ObservedMachine>> {
  const found = await findOrFail(platform, ref);
  if ('step' in found) return found.step;
  const { machine } = found;
  const { host, domain, live, running } = machine;
  const { memo } = domain.mark;
  if (memo === `restarted ${id}`)
    return running ? finishBoot(host, ref) : refused('conflict', `${ref} does not run`);
  if (memo !== `restart ${id}`) {
    if (!running) return refused('conflict', `${ref} does not run`);
    await remark(machine, { memo: `restart ${id}` });
    return pending(host.name, 1);
  }
  if (running && live.mark?.memo !== memo) {
    await cutPower(machine);
    return pending(host.name, 1);
  }
  if (!running) await powerOn(host, ref);
  await remark(machine, { memo: `restarted ${id}` });
  return finishBoot(host, ref);
}

/** Lets a paused machine go on; false: libvirt refuses that, as for one that crashed. */
async function resumes({ host, domain, pause }: FoundMachine): Promise<boolean> {
  try {
    await host.virsh([pause?.resumedBy ?? 'resume', '--', domain.name]);
    return true;
  } catch (error) {
    if (!(error instanceof VirshError) || tellsNothing(error)) throw error;
    return false;
  }
}

async function cutPower({ host, domain }: FoundMachine): Promise<void> {
  await unlessOff(host.virsh(['destroy', '--', domain.name], { timeoutMs: 30_000 }));
}

/** It may have ended meanwhile. */
async function unlessOff(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof VirshError && ['not_running', 'no_domain'].includes(error.problem))) throw error;
  }
}

/** The definition goes last: as long as anything is left, it is found by it. */
export async function destroyMachine({ fleet, config, log }: Platform, ref: OwnerRef): Promise<Step<null>> {
  const search = await fleet.find(ref);
  if (search.answer === 'unknown') throw new VirshError('unreachable', search.reason);
  if (search.answer === 'gone') {
    // Whoever deleted the domain behind our back left its files. Those of another's domain of that name stay.
    await Promise.all(
      fleet.hosts.map(async (host) => (await hasDomain(host, ref)) || deleteFiles(host, ref)),
    );
    return done(null);
  }
  let step: Step<null> = done(null);
  for (const machine of [search.machine, ...search.copies]) {
    const { host } = machine;
    if (machine.running) await cutPower(machine);
    const held = await removeSnapshots(machine, config.on_foreign_snapshot);
    if (held !== undefined) return held;
    await deleteFiles(host, ref);
    await host.virsh(['undefine', '--nvram', '--managed-save', '--snapshots-metadata', '--', ref]);
    if ((await readMachine(host, ref)) !== undefined) step = pending(host.name, POLL_MS);
    else if (machine.domain.mark.gpus.length > 0) await sweepHost(host, config.gpu_types, log);
  }
  return step;
}

/**
 * What an operator's external snapshots left: files that the domain is on, or that are called after the machine. Undefined:
 * there are none any more. Those of a volume's disk are never removed: they hold data of the volume.
 */
async function removeSnapshots(
  { host, domain, live }: FoundMachine,
  policy: 'wait' | 'delete',
): Promise<Step<never> | undefined> {
  const ref = domain.name;
  const own = filesOf(ref);
  const paths = [...domain.disks, ...live.disks].flatMap(({ path }) => path ?? []);
  const isOurs = (path: string): boolean =>
    [own.disk, own.seed].includes(basename(path)) || path.endsWith('.volume');
  const place = { stateDir: host.options.state_dir };
  const asked = ['exists', ...new Set(paths.filter((path) => !isOurs(path)))];
  const { lines } = await runHostScript(host.shell, place, asked);
  const inPool = await foreignFilesOf(host, ref);
  const elsewhere = lines.flatMap(([, path = '']) => (inPool.includes(basename(path)) ? [] : [path]));
  if (policy === 'delete') for (const name of inPool) await deleteVolume(host, name);
  const left = policy === 'delete' ? elsewhere : [...inPool, ...elsewhere];
  if (left.length === 0) return undefined;
  const advice =
    policy === 'wait'
      ? 'Remove these files, or set platform.on_foreign_snapshot: delete'
      : 'Remove these files';
  const detail = `an operator's snapshots hold ${ref} on ${host.name}: ${left.join(', ')}. ${advice}`;
  return refused('conflict', detail);
}
