import type { OwnerRef, Step } from '../../orchestrator/model/platform-driver.ts';
import { done, failed, pending } from '../../platform-model/steps.ts';
import type { Change } from './change.ts';
import { finishBoot, powerOn } from './create.ts';
import { remark } from './definition.ts';
import { isHostFailure, isRefusal, onProblem, VirshError } from './errors.ts';
import { type FoundMachine, rankOf, readMachine, rereadMachine } from './fleet.ts';
import { functionsOf, markGpus, sweepHost } from './gpus/machine-gpus.ts';
import { runHostScript } from './hosts/host-facts.ts';
import { readHostView } from './hosts/host-view.ts';
import { chooseGpus, settleClaim } from './hosts/room.ts';
import type { ChangingPlatform, MachineMethod, Platform } from './platform.ts';
import { isDiskLost } from './pool.ts';
import { toObserved } from './translate.ts';

const POLL_MS = 1_000;
/** A guest that is still booting ignores the first press of its power button. */
const PRESS_EVERY_MS = 5_000;

type Found = { machine: FoundMachine; others: readonly FoundMachine[] } | { step: Step<never> };

async function findOrFail({ fleet }: Platform, ref: OwnerRef): Promise<Found> {
  const search = await fleet.find(ref);
  if (search.answer === 'found') return search;
  if (search.answer === 'gone') return { step: failed('gone', `no host has ${ref}`) };
  throw new VirshError('unreachable', search.reason);
}

/** Presses the power button repeatedly, and cuts the power after the grace period. The cookie is `since:presses`. */
export const stopMachine: MachineMethod<'stop'> = async (platform, ref, cookie) => {
  const { change } = platform;
  const found = await findOrFail(platform, ref);
  if ('step' in found) return found.step;
  const { machine } = found;
  const { host, domain, run } = machine;
  if (run === undefined) {
    await assertEnded(machine);
    const claim = domain.mark.holds === true ? 'held' : 'released';
    if (domain.mark.claim !== claim || domain.mark.memo !== undefined)
      await (claim === 'held'
        ? remark(change, machine, { claim, memo: undefined })
        : release(platform, machine));
    // A start from an earlier call may have arrived since the read.
    else if (await change.fence(host)) return stopMachine(platform, ref, cookie);
    const stopped = await readMachine(host, ref);
    return stopped === undefined ? failed('gone', `no host has ${ref}`) : done(await toObserved(stopped));
  }
  const now = platform.clock.now();
  if (machine.pause?.passes === false) return stopPaused(change, machine, cookie, now);
  const [since = now, presses = 0] = cookie?.split(':').map(Number) ?? [];
  if (now - since >= platform.config.stop_grace_s * 1000) {
    await cutPower(change, machine);
    return pending(`${since}:${presses}`, 1);
  }
  if (now - since < presses * PRESS_EVERY_MS) return pending(`${since}:${presses}`, POLL_MS, 'shut down');
  await change.virsh(host, ['shutdown', '--mode', 'acpi', '--', run.id], { run }).catch(unlessOff);
  return pending(`${since}:${presses + 1}`, POLL_MS, 'shut down');
};

/** A halted machine does not see its power button, so it is resumed first. If it halts again, its power is cut. */
async function stopPaused(
  change: Change,
  machine: FoundMachine,
  cookie: string | null,
  now: number,
): Promise<Step<never>> {
  if (cookie === null && (await resumes(change, machine))) return pending(`${now}:0`, 1);
  await cutPower(change, machine);
  return pending(cookie ?? `${now}:0`, 1);
}

/** Starts a machine. If it released its resources when it stopped, it claims them again. */
export const startMachine: MachineMethod<'start'> = async (platform, ref, cookie) => {
  const { change } = platform;
  const found = await findOrFail(platform, ref);
  if ('step' in found) return found.step;
  const { machine, others } = found;
  const { host, domain } = machine;
  if (machine.running) {
    if (machine.pause?.passes === false) await resumes(change, machine);
    // A stop from an earlier call may have arrived since the read.
    else if (await change.fence(host)) return startMachine(platform, ref, cookie);
    return finishBoot(change, host, ref);
  }
  const rival = others.find((other) => rankOf(other) === rankOf(machine));
  if (rival !== undefined)
    return failed(
      'conflict',
      `${host.name} and ${rival.host.name} both have ${ref}, stopped: undefine the one with the older disk`,
    );
  if (await isDiskLost(host, domain.disks[0]?.path)) {
    // It may have been moved, with its disk, since it was found.
    await rereadMachine(host, ref);
    return failed('disk_lost', `${domain.disks[0]?.path} is not in the pool of ${host.name}`);
  }
  if (domain.mark.claim === 'released')
    return platform.fleet.alone(`place on ${host.name}`, () => reclaim(platform, machine));
  const refusal = domain.mark.claim === 'open' ? await holdClaim(platform, machine) : undefined;
  if (refusal !== undefined) return refusal;
  await powerOn(change, machine);
  return finishBoot(change, host, ref);
};

/** Confirms an open claim. Returns why the machine cannot start now, or undefined if the claim is held. */
async function holdClaim(
  platform: ChangingPlatform,
  machine: FoundMachine,
): Promise<Step<never> | undefined> {
  const { change } = platform;
  const { host, domain } = machine;
  const { ref, gpus } = domain.mark;
  const claim = settleClaim(await readHostView(host, host.shell, platform.config.gpu_types), ref);
  if (claim.verdict === 'wait') return pending(host.name, POLL_MS, 'claim');
  const taken = claim.verdict === 'held' ? await markGpus(change, host, ref, gpus) : claim.gpu;
  if (claim.verdict === 'lost' || taken !== undefined) {
    await release(platform, machine);
    // Other claims came first: it chooses again from the remaining GPUs.
    if (claim.verdict === 'held' || taken !== undefined) return pending(host.name, 1);
    return failed('capacity', `${host.name}, which has its disk, is full: ${claim.reason}`);
  }
  await remark(change, machine, { claim: 'held' });
  return undefined;
}

/** Releases the machine's resources except its disk, and its GPUs for other machines. */
async function release({ config, log, change }: ChangingPlatform, machine: FoundMachine): Promise<void> {
  const hadGpus = machine.domain.mark.gpus.length > 0;
  await remark(change, machine, { claim: 'released', memo: undefined, gpus: [] }, hadGpus ? [] : undefined);
  if (hadGpus) await sweepHost(machine.host, config.gpu_types, log, change);
}

/** Opens a claim for the machine's resources again. It may get other GPUs; all were reset in between. */
async function reclaim({ config, change }: ChangingPlatform, machine: FoundMachine): Promise<Step<never>> {
  const { host, domain } = machine;
  const { gpuCount, gpuType } = domain.mark;
  if (gpuCount === 0) await remark(change, machine, { claim: 'open' });
  else {
    const view = await readHostView(host, host.shell, config.gpu_types);
    const gpus = chooseGpus(view, { gpuCount, gpuType });
    if (gpus.length < gpuCount)
      return failed(
        'capacity',
        `${host.name}, which has its disk, has ${gpus.length} of ${gpuCount} ${gpuType} free`,
      );
    await remark(change, machine, { claim: 'open', gpus }, functionsOf(view, gpus));
  }
  return pending(host.name, 1);
}

/**
 * Restarts by cutting and restoring the power. The id is written to the stored definition first, which takes effect
 * at the next start. So a machine that runs with the id has been restarted; one without it has not.
 */
export const restartMachine: MachineMethod<'restart'> = async (platform, ref, id) => {
  const { change } = platform;
  const found = await findOrFail(platform, ref);
  if ('step' in found) return found.step;
  const { machine } = found;
  const { host, domain, live, running } = machine;
  const { memo } = domain.mark;
  if (memo === `restarted ${id}`)
    return running ? finishBoot(change, host, ref) : failed('conflict', `${ref} does not run`);
  if (memo !== `restart ${id}`) {
    if (!running) return failed('conflict', `${ref} does not run`);
    await remark(change, machine, { memo: `restart ${id}` });
    return pending(host.name, 1);
  }
  if (running && live.mark?.memo !== memo) {
    await cutPower(change, machine);
    return pending(host.name, 1);
  }
  if (!running) await powerOn(change, machine);
  await remark(change, machine, { memo: `restarted ${id}` });
  return finishBoot(change, host, ref);
};

/** Resumes a paused machine. Returns false if libvirt refuses, for example after a crash. */
async function resumes(change: Change, { host, domain, pause }: FoundMachine): Promise<boolean> {
  try {
    await change.virsh(host, [pause?.resumedBy ?? 'resume', '--', domain.uuid]);
    return true;
  } catch (error) {
    if (!(error instanceof VirshError) || isHostFailure(error) || isRefusal(error)) throw error;
    return false;
  }
}

/** Cuts the power of the run that was read, so that a late command does not end the next run. */
export async function cutPower(change: Change, { host, run }: FoundMachine): Promise<void> {
  if (run === undefined) return;
  await change.virsh(host, ['destroy', '--', run.id], { run, timeoutMs: 30_000 }).catch(unlessOff);
}

/**
 * Libvirt shows a domain as shut off although its QEMU process did not end when it was killed. Its memory, GPUs and disk
 * are then still in use.
 *
 * @throws {VirshError} `busy` while there is such a process
 */
export async function assertEnded({ host, domain }: FoundMachine): Promise<void> {
  const place = { stateDir: host.options.state_dir };
  const { lines } = await runHostScript(host.shell, place, ['processes', domain.uuid]);
  const [[, pid] = []] = lines;
  if (pid === undefined) return;
  throw new VirshError(
    'busy',
    `libvirt shows ${domain.name} as shut off, but its QEMU process ${pid} still runs on ${host.name}: end it, or restart the host if it does not end`,
  );
}

/** For `catch`: the run may have ended in the meantime. */
const unlessOff = onProblem(['not_running', 'no_domain'], '');
