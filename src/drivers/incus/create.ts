import type {
  MachineSpec,
  ObservedMachine,
  OwnerRef,
  Step,
} from '../../orchestrator/model/platform-driver.ts';
import { done, failed, unfinished } from '../../platform-model/steps.ts';
import { type Instance, targetOf } from './api.ts';
import { reach } from './endpoints.ts';
import { isNotFound, unlessConflict } from './errors.ts';
import { type Found, findByName, findMachine, note } from './finder.ts';
import { isJudgeable, NO_MEMBER, offerOf } from './fleet.ts';
import { giveUpGpus, settleGpus } from './gpus.ts';
import { identifyAll } from './identity.ts';
import { failureOf, operationOf, operationsOn, setPower, underWay, withEffect } from './operations.ts';
import { countedRefs, freeGpus, NO_ROOM, placesFor, toPlacing } from './placement.ts';
import type { MachineMethod, Platform } from './platform.ts';
import {
  imageOf,
  isName,
  isRunning,
  isStopped,
  mark,
  phases,
  rootOf,
  toPlatform,
  UUID,
} from './translate.ts';

/** How long a create waits for Incus to write the new record, in milliseconds. */
const SHOWN_WITHIN_MS = 3_000;
const SHOWN_POLL_MS = 50;

/** @throws as {@link IncusApi} */
export const placeMachine: MachineMethod<'place'> = async (platform, spec, avoidHosts) => {
  if (!isName(spec.ref)) return { answer: 'refused', code: 'invalid', detail: notAName(spec.ref) };
  const { options, catalog, fleet } = platform;
  const offer = offerOf(catalog.offers.get(spec.offerId));
  const now = await fleet.read();
  if (!isJudgeable(now)) return { answer: 'unknown', reason: NO_MEMBER };
  const missing = await missingImage(platform, spec);
  if (missing !== undefined) return { answer: 'refused', code: 'image_missing', detail: missing };
  const places = placesFor({ ...spec, avoidHosts }, now, offer, options);
  return toPlacing(places, now, countedRefs(now), spec.host);
};

export const createMachine: MachineMethod<'create'> = async (platform, spec, cookie) => {
  if (!isName(spec.ref)) return failed('invalid', notAName(spec.ref));
  return createFrom(platform, await findByName(platform, spec.ref), spec, cookie);
};

async function createFrom(
  platform: Platform,
  found: Found,
  spec: MachineSpec,
  cookie: string | null,
): Promise<Step<ObservedMachine>> {
  switch (found.is) {
    case 'unknown':
      return failed('transient', found.reason, 'possible');
    case 'foreign':
      return failed('already_exists', `an instance ${spec.ref} already exists, and it is not Berth's`);
    case 'coming':
      return underWay('make');
    case 'absent':
      return (await failedBuild(platform, cookie)) ?? make(platform, spec, cookie);
    case 'ours':
      if (found.isMoving) return underWay(cookie ?? 'make');
      return withEffect(() => finish(platform, found.instance, cookie));
  }
}

/** The failure of a build, which Incus has undone. */
async function failedBuild({ api }: Platform, cookie: string | null): Promise<Step<never> | undefined> {
  const problem = await failureOf(api, cookie);
  return problem?.code === 'internal' ? { ...problem, code: 'boot_failed' } : problem;
}

async function finish(
  platform: Platform,
  instance: Instance,
  cookie: string | null,
): Promise<Step<ObservedMachine>> {
  const { api } = platform;
  const phase = instance.config[mark.phase];
  if (phase === undefined) return afterMaking(platform, instance, cookie);
  if (isStopped(instance)) {
    const problem = await failureOf(api, cookie, 'boot');
    return problem ?? boot(platform, instance);
  }
  if (!isRunning(instance)) return underWay(cookie ?? 'boot');
  const step = await reach(platform, instance);
  if (step.outcome !== 'done' || phase === phases.created) return step;
  if (!(await setPhase(platform, instance, phases.created))) return underWay('created');
  return done({ ...step.value, power: 'running' });
}

/**
 * Sets the phase and the id in the mark, before a copy can be made. Returns false if the instance has changed, as
 * {@link note} does.
 */
function setPhase(platform: Platform, instance: Instance, phase: string): Promise<boolean> {
  const uuid = instance.config[UUID];
  return note(platform, instance, { [mark.phase]: phase, ...(uuid !== undefined && { [mark.uuid]: uuid }) });
}

/**
 * Starts the machine for the first time, once it holds its GPUs. If another machine has them, the core makes it
 * again under the next name.
 */
async function boot(platform: Platform, instance: Instance): Promise<Step<ObservedMachine>> {
  const { name, config } = instance;
  const verdict = await settleGpus(platform, instance);
  if (verdict === 'held') return setPower(platform, name, { action: 'start' }, 'boot');
  if (verdict === 'lost' && config[mark.phase] !== phases.created) {
    await giveUpGpus(platform, instance);
    return unfinished('its GPUs are in use by another machine');
  }
  return underWay('make');
}

async function make(
  platform: Platform,
  spec: MachineSpec,
  cookie: string | null,
): Promise<Step<ObservedMachine>> {
  const step = await platform.alone(() => begin(platform, spec));
  if (step !== 'renamed') return step;
  const found = await findMachine(platform, spec.ref);
  return found.is === 'absent' ? underWay('make') : createFrom(platform, found, spec, cookie);
}

/** Sends the create. `renamed` means that the machine exists under another name. */
async function begin(platform: Platform, spec: MachineSpec): Promise<Step<ObservedMachine> | 'renamed'> {
  const { api, options, catalog, fleet, call } = platform;
  const offer = offerOf(catalog.offers.get(spec.offerId));
  const now = await fleet.read();
  if (!isJudgeable(now)) return failed('transient', NO_MEMBER);
  const known = identifyAll(now.instances).get(spec.ref);
  if (known?.machine !== undefined) return 'renamed';
  const [place] = placesFor(spec, now, offer, options);
  if (place === undefined) return failed('capacity', NO_ROOM);
  const missing = await missingImage(platform, spec);
  if (missing !== undefined) return failed('image_missing', missing);
  const gpus = freeGpus(place.host, now, offer).slice(0, spec.gpuCount);
  const query = targetOf(place.host.name);
  const body = toPlatform(spec, offer, options, gpus);
  const made = await unlessConflict(api.client.send('POST', '/1.0/instances', { query, body, call }));
  // An earlier request of this attempt took effect after all.
  if (made === undefined) return underWay('make');
  await untilShown(platform, spec.ref, made.operation).catch(() => undefined);
  return underWay(`make:${made.operation}`);
}

async function missingImage(platform: Platform, spec: MachineSpec): Promise<string | undefined> {
  const { api, options, catalog } = platform;
  const { alias } = imageOf(spec.image, offerOf(catalog.offers.get(spec.offerId)), options);
  return (await api.image(alias)) === undefined ? `there is no image ${alias}` : undefined;
}

/** Waits until the new instance is visible, or its operation has ended. */
async function untilShown(platform: Platform, ref: OwnerRef, operation: string | undefined): Promise<void> {
  const { api, wait, call } = platform;
  for (let waited = 0; waited < SHOWN_WITHIN_MS; waited += SHOWN_POLL_MS) {
    if (call?.signal.aborted || (await api.instance(ref)) !== undefined) return;
    const running = operation === undefined ? undefined : await api.operation(operation);
    if (running === undefined || running.status_code >= 200) return;
    await wait(SHOWN_POLL_MS);
  }
}

/**
 * Decides whether the disk of an existing record is complete. Operations are lost with their daemon. If no operation
 * reports success, the instance has never been started and is given up.
 */
async function afterMaking(
  platform: Platform,
  instance: Instance,
  cookie: string | null,
): Promise<Step<ObservedMachine>> {
  const { api } = platform;
  const { name } = instance;
  const operation =
    (await operationOf(api, cookie)) ??
    (await operationsOn(api, name)).find(({ description }) => /^Creating/.test(description));
  if (operation !== undefined && operation.status_code !== 200) return underWay(`make:${operation.id}`);
  if (operation?.status_code === 200) {
    const built = (await setPhase(platform, instance, phases.built)) && (await api.instance(name));
    return built ? boot(platform, built) : underWay(cookie ?? 'make');
  }
  if (isRunning(instance)) return failed('conflict', 'it runs, but its creation never completed', 'certain');
  await platform.alone(() => dropImageCopy(platform, instance));
  return unfinished('its creation was interrupted, and its disk may be incomplete');
}

/**
 * Deletes the unpacked copy of an image, so that Incus unpacks it again. Each pool has such a copy of each image, on
 * each member. If the daemon ends while unpacking, Incus later treats the partial copy as complete, and machines made
 * from it do not boot.
 */
async function dropImageCopy(
  platform: Platform,
  { config, expanded_devices: devices, location }: Instance,
): Promise<void> {
  const { api, call } = platform;
  const fingerprint = config['volatile.base_image'];
  const pool = rootOf(devices)?.['pool'];
  if (fingerprint === undefined || pool === undefined) return;
  const isCopied = (await api.operations()).some(
    ({ status_code: code, description, location: at }) =>
      code < 200 && /^Creating/.test(description) && (at === undefined || at === location),
  );
  if (isCopied) return;
  try {
    const path = `/1.0/storage-pools/${pool}/volumes/image/${fingerprint}`;
    await api.client.send('DELETE', path, { query: targetOf(location), unpackedImage: true, call });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

function notAName(ref: OwnerRef): string {
  return `${ref} is not a valid Incus name`;
}
