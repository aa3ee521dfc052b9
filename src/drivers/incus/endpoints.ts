import type { DestroyOrder } from '../../orchestrator/model/destroy-order.ts';
import type { Endpoint, ObservedMachine, OwnerRef, Step } from '../../orchestrator/model/platform-driver.ts';
import { done, failed } from '../../platform-model/steps.ts';
import type { Forward, Instance } from './api.ts';
import { isConflict } from './errors.ts';
import { offerOf } from './fleet.ts';
import { NoPortLeft } from './forwards.ts';
import { underWay } from './operations.ts';
import type { IncusOffer } from './options.ts';
import type { Platform } from './platform.ts';
import { addressOf, fromPlatform, isRunning, mark, phases, SSH_PORT } from './translate.ts';

/** Returns the machine once it has an endpoint. Pending until then. */
export async function reach(platform: Platform, instance: Instance): Promise<Step<ObservedMachine>> {
  if (addressOf(instance) === undefined) return underWay('address');
  try {
    await ensurePorts(platform, instance);
  } catch (error) {
    if (error instanceof NoPortLeft) return failed('capacity', error.message, 'certain');
    if (isConflict(error)) return underWay('address');
    throw error;
  }
  const machine = await showMachine(platform, instance);
  return machine.endpoint === undefined
    ? failed('invalid', `port_forwards.addresses has no address for ${instance.location}`, 'certain')
    : done(machine);
}

/**
 * Restores the ports of a machine. Another Berth that changed the same address at the same time may have removed
 * them.
 */
export async function restoreEndpoint(platform: Platform, instance: Instance): Promise<void> {
  if (!isUp(instance)) return;
  try {
    await ensurePorts(platform, instance);
  } catch (error) {
    if (!(error instanceof NoPortLeft) && !isConflict(error)) throw error;
  }
}

export function isMissingPorts(
  platform: Platform,
  instance: Instance,
  forwards: readonly Forward[],
): boolean {
  const isReached = (): boolean => platform.forwards?.endpointOf(instance, forwards) !== undefined;
  return (
    platform.forwards !== undefined && isUp(instance) && addressOf(instance) !== undefined && !isReached()
  );
}

async function ensurePorts(platform: Platform, instance: Instance): Promise<void> {
  const offer = offerOfInstance(platform, instance);
  const { forwards, options, call } = platform;
  await forwards?.ensure(instance, offer.network ?? options.network, offer, call);
}

export async function showMachine(
  platform: Platform,
  instance: Instance,
  isMoving = false,
): Promise<ObservedMachine> {
  const network = offerOfInstance(platform, instance).network ?? platform.options.network;
  const forwards = platform.forwards === undefined ? [] : await platform.api.forwards(network);
  return fromPlatform(instance, endpointOf(platform, instance, forwards), isMoving);
}

/** The forwards of every network that has machines. */
export async function readForwards(platform: Platform): Promise<Forward[]> {
  if (platform.forwards === undefined) return [];
  return (await Promise.all(networksOf(platform).map((network) => platform.api.forwards(network)))).flat();
}

export function endpointOf(
  platform: Platform,
  instance: Instance,
  forwards: readonly Forward[],
): Endpoint | undefined {
  if (platform.forwards !== undefined) return platform.forwards.endpointOf(instance, forwards);
  const publicIp = addressOf(instance);
  const sshUsername = instance.config[mark.loginUser] ?? 'root';
  return publicIp === undefined ? undefined : { publicIp, sshPort: SSH_PORT, sshUsername };
}

/** Removes the forwards to a machine; returns whether there were any. Without an order it keeps the shared objects. */
export async function removeForwards(
  platform: Platform,
  ref: OwnerRef,
  order?: DestroyOrder,
): Promise<boolean> {
  const { forwards, call } = platform;
  let hadSome = false;
  for (const network of networksOf(platform))
    if (await forwards?.remove(ref, network, { order, call })) hadSome = true;
  return hadSome;
}

/** Removes ports that a late call has forwarded to a machine that is gone. */
export async function sweepForwards(
  platform: Platform,
  forwards: readonly Forward[],
  known: readonly string[],
  isGone: (ref: OwnerRef) => Promise<boolean>,
): Promise<void> {
  for (const ref of platform.forwards?.strays(forwards, known) ?? [])
    if (await isGone(ref)) await removeForwards(platform, ref);
}

function networksOf(platform: Platform): string[] {
  const { options, catalog } = platform;
  const ofOffers = [...catalog.offers.values()].flatMap((one) => offerOf(one).network ?? []);
  return [...new Set([options.network, ...ofOffers])];
}

function offerOfInstance(platform: Platform, { config }: Instance): IncusOffer {
  return offerOf(platform.catalog.offers.get(config[mark.offer] ?? ''));
}

function isUp(instance: Instance): boolean {
  return instance.config[mark.phase] === phases.created && isRunning(instance);
}
