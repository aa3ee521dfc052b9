import { randomUUID } from 'node:crypto';
import type { OwnerRef } from '../../../orchestrator/model/platform-driver.ts';
import type { Log } from '../../../ports/log.ts';
import type { Change } from '../change.ts';
import type { Host } from '../client.ts';
import { VirshError } from '../errors.ts';
import { listDomains } from '../hosts/domains.ts';
import { runHostScript, type ScriptAnswer, type ScriptPlace } from '../hosts/host-facts.ts';
import type { HostShell } from '../hosts/host-shell.ts';
import type { HostView } from '../hosts/room.ts';
import { type Gpu, type GpuTypes, listGpus, slotOf } from './gpus.ts';
import { type GpuScan, type PciAddress, type PciFunction, scanGpus } from './pci-functions.ts';

type HostWithShell = Host & { shell: HostShell };

/** All PCI functions of the chosen GPUs: a guest gets the whole slot. */
export function functionsOf({ gpus }: Pick<HostView, 'gpus'>, chosen: readonly PciAddress[]): PciAddress[] {
  return gpus
    .filter(({ address }) => chosen.includes(address))
    .flatMap(({ functions }) => functions.map(({ address }) => address));
}

/** Marks the machine's GPUs before it starts. Returns a GPU that has another mark, or undefined if all are marked. */
export async function markGpus(
  change: Change,
  host: HostWithShell,
  ref: OwnerRef,
  gpus: readonly PciAddress[],
): Promise<PciAddress | undefined> {
  const [shell, place] = [change.shellOf(host), { stateDir: host.options.state_dir }];
  for (const address of gpus) if (!(await markGpu(shell, place, address, ref, randomUUID()))) return address;
  return undefined;
}

/** Resets the GPUs that machines of the host have left, within the limits of `change`. @throws {VirshError} */
export async function sweepHost(
  host: HostWithShell,
  types: GpuTypes,
  log: Log,
  change?: Change,
): Promise<void> {
  if (Object.keys(types).length === 0) return;
  const domains = await listDomains(host);
  const claimed = new Set(
    domains.flatMap(({ pciFunctions, mark }) => [...pciFunctions, ...(mark?.gpus ?? [])]),
  );
  const shell = change?.shellOf(host) ?? host.shell;
  await sweepGpus(shell, { stateDir: host.options.state_dir }, types, claimed, log);
}

/**
 * Exit status if the mark was changed since it was read. The process that changed it is then responsible for the GPU.
 */
const MARKED_OTHERWISE = 3;

/**
 * Marks a GPU for a machine on the host before the machine starts, so that the GPU is reset before its next use, even
 * after a crash. Returns false if the GPU has another mark. A machine that keeps its GPU marks it again, with a new
 * `nonce`.
 *
 * @throws {VirshError}
 */
export async function markGpu(
  host: HostShell,
  place: ScriptPlace,
  address: PciAddress,
  ref: OwnerRef,
  nonce: string,
): Promise<boolean> {
  return isDone(host, await runHostScript(host, place, ['mark', address, ref, nonce]));
}

/** `clean`: it is free now · `quarantined`: it is out of use · `changed`: its mark was changed in the meantime. */
type SanitizeOutcome =
  | { outcome: 'clean' }
  | { outcome: 'quarantined'; reason: string }
  | { outcome: 'changed' };

/**
 * Resets a dirty GPU that no domain has, compares its state with that before the reset, and frees or quarantines it.
 * Each write requires the mark that was read, so a GPU that got a new machine in between is not reset.
 *
 * @throws {VirshError}
 */
export async function sanitizeGpu(
  host: HostShell,
  place: ScriptPlace,
  gpu: Gpu,
  before: GpuScan,
): Promise<SanitizeOutcome> {
  const { address, mark = '' } = gpu;
  const run = (...command: string[]): Promise<ScriptAnswer> => runHostScript(host, place, command, 60_000);
  const quarantine = async (reason: string): Promise<SanitizeOutcome> => {
    const marked = await run('quarantine', address, mark, reason.replaceAll(/\s+/g, ' '));
    return isDone(host, marked) ? { outcome: 'quarantined', reason } : { outcome: 'changed' };
  };
  const plan = planReset(gpu.functions, before);
  if ('impossible' in plan) return quarantine(plan.impossible);
  const reset = await run('reset', address, mark, ...plan.files);
  if (reset.status === MARKED_OTHERWISE) return { outcome: 'changed' };
  if (reset.status !== 0) return quarantine(`the reset failed: ${reset.stderr.trim().slice(0, 200)}`);
  const damage = damageOf(gpu.functions, await scanGpus(host, place));
  if (damage !== undefined) return quarantine(damage);
  return isDone(host, await run('clear', address, mark)) ? { outcome: 'clean' } : { outcome: 'changed' };
}

function isDone(host: HostShell, { status, stderr }: ScriptAnswer): boolean {
  if (status === 0) return true;
  if (status === MARKED_OTHERWISE) return false;
  const words = stderr.trim().slice(0, 300);
  throw new VirshError('other', `${host.name}: the state of its GPUs cannot be written: ${words}`);
}

/** The files below `/sys/bus/pci/devices` to write for a reset, in order; or why it is impossible. */
type ResetPlan = { files: readonly string[] } | { impossible: string };

/**
 * Plans a reset of each function individually if it supports that. A function that supports only a bus reset is reset
 * through its bridge, and only if no other device is below that bridge.
 */
export function planReset(functions: readonly PciFunction[], { functions: all }: GpuScan): ResetPlan {
  const ofTheBus = functions.filter(({ resetMethods }) => resetMethods.every((method) => method === 'bus'));
  if (ofTheBus.length === 0) return { files: functions.map(({ address }) => `${address}/reset`) };
  const [first] = ofTheBus;
  if (first === undefined || first.bridge === undefined || !first.canResetBus)
    return resetOfLone(functions, ofTheBus);
  const others = [...all.values()].filter(
    ({ address, bridge }) => bridge === first.bridge && slotOf(address) !== slotOf(first.address),
  );
  if (others.length > 0)
    return { impossible: `a reset of ${first.address} would also reset ${others[0]?.address}` };
  return { files: [`${first.bridge}/reset_subordinate`] };
}

/**
 * Plans the bus reset of a single function on its bus, by its own `reset`. With a second function the kernel refuses
 * that.
 */
function resetOfLone(functions: readonly PciFunction[], ofTheBus: readonly PciFunction[]): ResetPlan {
  const none = ofTheBus.find(({ resetMethods }) => resetMethods.length === 0);
  if (none !== undefined)
    return { impossible: `the kernel has no reset method for ${none.address} (${none.id})` };
  if (functions.length === 1) return { files: functions.map(({ address }) => `${address}/reset`) };
  return {
    impossible: `${ofTheBus[0]?.address} can be reset only with its bus, but its bridge has no reset_subordinate`,
  };
}

export function damageOf(before: readonly PciFunction[], { functions }: GpuScan): string | undefined {
  return before
    .map((was) => damageOfFunction(was, functions.get(was.address)))
    .find((found) => found !== undefined);
}

function damageOfFunction(was: PciFunction, is: PciFunction | undefined): string | undefined {
  const { address, id } = was;
  const grew = (key: 'fatalErrors' | 'nonfatalErrors'): boolean => (is?.[key] ?? 0) > (was[key] ?? 0);
  if (is === undefined) return `${address} is gone from the bus after the reset`;
  if (is.answersAs !== id)
    return `${address} answers as ${is.answersAs ?? 'nothing'} after the reset, not as ${id}`;
  if (is.driver !== 'vfio-pci') return `${address} is bound to ${is.driver ?? 'no driver'} after the reset`;
  if (grew('fatalErrors')) return `${address} reported fatal PCIe errors during the reset`;
  if (grew('nonfatalErrors')) return `${address} reported PCIe errors during the reset`;
  if ((is.linkWidth ?? 0) < (was.linkWidth ?? 0))
    return `the link of ${address} has ${is.linkWidth} lanes after the reset instead of ${was.linkWidth}`;
  return undefined;
}

/**
 * Resets every GPU that a machine had and no domain has any more, so that it can be sold again. `claimed`: the
 * functions that domains named before this call; a later claim cannot take a dirty GPU. Returns how many GPUs were
 * freed.
 *
 * @throws {VirshError} if the host does not answer
 */
export async function sweepGpus(
  shell: HostShell,
  place: ScriptPlace,
  types: GpuTypes,
  claimed: ReadonlySet<PciAddress>,
  log: Log,
): Promise<number> {
  const scan = await scanGpus(shell, place);
  let freed = 0;
  for (const gpu of listGpus(scan, types, claimed)) {
    if (gpu.state !== 'dirty') continue;
    const swept = await sanitizeGpu(shell, place, gpu, scan);
    const fields = { host: shell.name, gpu: gpu.address, gpu_type: gpu.type };
    if (swept.outcome === 'clean') {
      freed++;
      log.info(fields, 'a GPU was reset and can be sold again');
    } else if (swept.outcome === 'quarantined')
      log.error(
        { ...fields, reason: swept.reason },
        'a GPU is out of use: it failed its reset; docs/how-to/gpus.md describes how to return it to use',
      );
  }
  return freed;
}
