import { done, failed } from '../../platform-model/steps.ts';
import { unmark } from './definition.ts';
import { unlessSilent } from './destroy.ts';
import { VirshError } from './errors.ts';
import type { FoundMachine } from './fleet.ts';
import { sweepHost } from './gpus/machine-gpus.ts';
import { proveGone } from './leftovers.ts';
import type { ChangingPlatform, MachineMethod } from './platform.ts';
import { powerOf } from './translate.ts';

/**
 * Releases a machine: replaces its mark with a release mark, on every host that has it. The domain and its disks stay
 * unchanged for their new owner. Its volumes stay Berth's and are detached. Its address stays taken, since its guest
 * uses it.
 */
export const disownMachine: MachineMethod<'disown'> = async (platform, ref, cookie) => {
  const { fleet, clock, change } = platform;
  const search = await fleet.find(ref);
  if (search.answer === 'unknown' && search.hosts === undefined)
    throw new VirshError('unreachable', search.reason);
  if (search.answer !== 'found') {
    const { hosts, left } = await proveGone(fleet.hosts, ref, search.hosts ?? { answered: [], silent: [] });
    return left === undefined ? unlessSilent(ref, hosts.silent) : failed('conflict', left);
  }
  const machines = [search.machine, ...search.others];
  for (const machine of machines) {
    const obstacle = await obstacleOf(machine);
    if (obstacle !== undefined) return failed('conflict', obstacle);
  }
  // A start from an earlier call may have arrived since the read.
  let mayBeOld = false;
  for (const { host } of machines) mayBeOld = (await change.fence(host)) || mayBeOld;
  if (mayBeOld) return disownMachine(platform, ref, cookie);
  for (const machine of machines) await disownOn(platform, machine, clock.now());
  return done(null);
};

/** Why the machine cannot be released. Undefined if it can. */
async function obstacleOf(machine: FoundMachine): Promise<string | undefined> {
  const { host, domain } = machine;
  const { ref } = domain.mark;
  const power = powerOf(machine);
  if (power !== 'stopped') return `${ref} is ${power} on ${host.name}: stop it first`;
  // A saved memory image contains the mark.
  const saved = await host.virsh(['list', '--all', '--uuid', '--with-managed-save']);
  if (!saved.split(/\s+/).includes(domain.uuid)) return undefined;
  return `${ref} has a managed save on ${host.name}: start and stop it first, or run virsh managedsave-remove ${domain.name}`;
}

async function disownOn(
  { config, log, change }: ChangingPlatform,
  machine: FoundMachine,
  at: number,
): Promise<void> {
  const { host, domain } = machine;
  const { ref, nat, gpus } = domain.mark;
  const volumes = domain.disks.flatMap(({ path }) => (path?.endsWith('.volume') === true ? path : []));
  await unmark(change, machine, { ref, at, hostPort: nat?.hostPort }, volumes);
  if (gpus.length > 0) await sweepHost(host, config.gpu_types, log, change);
}
