import type { Offer } from '../../orchestrator/catalog/catalog.ts';
import type { Step } from '../../orchestrator/model/platform-driver.ts';
import { failed } from '../../platform-model/steps.ts';
import type { Instance } from './api.ts';
import { note } from './finder.ts';
import { normalPci, offerOf } from './fleet.ts';
import { pathOf, underWay } from './operations.ts';
import { freeGpus } from './placement.ts';
import type { Platform } from './platform.ts';
import { gpuClaims, gpuDevices, mark } from './translate.ts';

/**
 * The result of claiming GPUs for a machine.
 *
 * - `held`: the machine holds them.
 * - `wait`: other machines that chose them at the same time will back out; retry soon.
 * - `lost`: back out.
 */
export type GpuVerdict = 'held' | 'wait' | 'lost';

/**
 * Confirms the GPUs that a stopped machine names, unless another instance names one too. Incus gives one GPU to any
 * number of containers, and several processes may choose the same. A machine first names its GPUs with an `open`
 * claim, and starts only if no other machine then names one. Of two, the second writer sees the first; if both are
 * open, their names decide.
 */
export async function settleGpus(platform: Platform, instance: Instance): Promise<GpuVerdict> {
  const { fleet } = platform;
  const { location, config } = instance;
  if (config[mark.gpus] !== gpuClaims.open) return 'held';
  // The machine has given up its GPUs.
  if (gpuNames(instance).length < countOf(platform, instance)) return 'lost';
  const { instances, hosts } = await fleet.read();
  if (hosts.find((host) => host.name === location)?.isOnline !== true) return 'wait';
  const own = new Set(addressesOf(instance));
  const rivals = instances.filter(
    (one) =>
      keyOf(one) !== keyOf(instance) &&
      one.location === location &&
      addressesOf(one).some((pci) => pci === undefined || own.has(pci)),
  );
  if (rivals.some((one) => one.config[mark.gpus] !== gpuClaims.open || keyOf(one) < keyOf(instance)))
    return 'lost';
  if (rivals.length > 0) return 'wait';
  return (await note(platform, instance, { [mark.gpus]: gpuClaims.held })) ? 'held' : 'wait';
}

/** Assigns GPUs to a stopped machine again. Returns undefined if it has its GPUs and may start. */
export async function claimGpus(platform: Platform, instance: Instance): Promise<Step<never> | undefined> {
  const { fleet } = platform;
  const offer = offerOfInstance(platform, instance);
  const count = countOf(platform, instance);
  if (gpuNames(instance).length >= count) {
    const verdict = await settleGpus(platform, instance);
    if (verdict === 'held') return undefined;
    if (verdict === 'lost') await giveUpGpus(platform, instance);
    return underWay('start');
  }
  const now = await fleet.read();
  const host = now.hosts.find(({ name }) => name === instance.location);
  if (host?.isOnline !== true)
    return failed('transient', `the GPUs of ${instance.location} cannot be read now`);
  const free = freeGpus(host, now, offerOf(offer));
  if (free.length < count)
    return failed('capacity', `${free.length} of ${count} GPUs are free on ${instance.location}`);
  await replaceDevices(platform, instance.name, (devices) => ({
    ...devices,
    ...gpuDevices(free.slice(0, count)),
  }));
  return underWay('start');
}

export async function releaseGpus(platform: Platform, instance: Instance): Promise<boolean> {
  if (offerOfInstance(platform, instance)?.onStop !== 'release' || gpuNames(instance).length === 0)
    return false;
  await giveUpGpus(platform, instance);
  return true;
}

export function giveUpGpus(platform: Platform, { name }: Instance): Promise<void> {
  return replaceDevices(platform, name, (devices) =>
    Object.fromEntries(Object.entries(devices).filter(([device]) => !isGpuName(device))),
  );
}

function offerOfInstance(platform: Platform, { config }: Instance): Offer | undefined {
  return platform.catalog.offers.get(config[mark.offer] ?? '');
}

function countOf(platform: Platform, instance: Instance): number {
  return offerOfInstance(platform, instance)?.gpuCount ?? 0;
}

async function replaceDevices(
  { api, call }: Platform,
  name: string,
  change: (devices: Record<string, unknown>) => Record<string, unknown>,
): Promise<void> {
  const found = await api.instanceToReplace(name);
  if (found === undefined) return;
  const devices = change((found.value['devices'] ?? {}) as Record<string, unknown>);
  const config = { ...(found.value['config'] as object), [mark.gpus]: gpuClaims.open };
  const body = { ...found.value, devices, config };
  await api.client.send('PUT', pathOf(name), { body, etag: found.etag, call });
}

/** A key that is unique among the instances of all projects. */
function keyOf({ name, project = '' }: Instance): string {
  return `${name} ${project}`;
}

/** The PCI addresses of its GPU devices. Undefined for a device that takes all matching GPUs. */
function addressesOf({ expanded_devices: devices }: Instance): (string | undefined)[] {
  const gpus = Object.values(devices).filter(({ type }) => type === 'gpu');
  return gpus.map(({ pci }) => (pci === undefined ? undefined : normalPci(pci)));
}

function gpuNames({ devices }: Instance): string[] {
  return Object.keys(devices).filter(isGpuName);
}

export function isGpuName(device: string): boolean {
  return /^gpu\d+$/.test(device);
}
