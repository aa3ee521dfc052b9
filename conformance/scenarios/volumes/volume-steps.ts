import { instancePath, volumePath } from '../../contract/paths.ts';
import type { Entry } from '../../resources/ledger.ts';
import { isObject, type JsonObject, stringField, stringsField } from '../../text/json.ts';
import { isSuccess, successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { isReclaimed } from '../scenario.ts';
import type { Instance, Session, Wait } from '../session.ts';

/** A volume of the run. */
export interface Volume {
  entry: Entry;
  id: string;
  sizeGb: number;
}

/** The location and type of a volume. */
export interface VolumePlace {
  region: string;
  type: string | undefined;
}

/** The contract names no minimum size. Larger sizes are tried if smaller ones are refused. */
const SIZES_GB = [10, 100, 250, 500, 1000];
/** The reason if no volume could be created. */
export const NO_SUCH_SIZE = `no volume could be created, of ${SIZES_GB.join(', ')} GB`;

/** A valid body of a create. */
export function volumeBody({ region, type }: VolumePlace, name: string, sizeGb = SIZES_GB[0]): JsonObject {
  return { name, size_gb: sizeGb, region, ...(type !== undefined && { type }) };
}

/** Creates a volume. The steps are `<step>/<size>-gb`. Undefined if none was created. */
export async function createVolume(
  session: Session,
  step: string,
  place: VolumePlace,
  extra: JsonObject = {},
): Promise<Volume | undefined> {
  for (const sizeGb of SIZES_GB) {
    const { entry, exchange } = await session.create({
      type: 'volume',
      step: `${step}/${sizeGb}-gb`,
      body: ({ name }) => ({ ...volumeBody(place, name, sizeGb), ...extra }),
      region: place.region,
      ...session.volumePrice(sizeGb),
    });
    session.learnVolumePrice(entry, sizeGb);
    if (entry.id !== undefined) return { entry, id: entry.id, sizeGb };
    if (exchange.answer?.status !== 400) return undefined;
  }
  return undefined;
}

type Reached = (status: string | undefined, shown: JsonObject | undefined) => boolean;

export interface VolumeWait extends Wait {
  /** Each poll also reads this instance as `<step>-instance`, and the wait ends if it is reclaimed. */
  beside?: Instance | undefined;
}

/**
 * Polls a volume until `isReached` accepts its status ('404' for a read answered 404). Returns that read, or undefined
 * on timeout or if the wait cannot succeed any more.
 */
export async function pollVolume(
  session: Session,
  step: string,
  volume: Volume,
  isReached: Reached,
  wait: VolumeWait,
): Promise<Exchange | undefined> {
  const { pollIntervalMs, readyTimeoutMs } = session.settings;
  const { beside } = wait;
  const startedAt = session.now();
  const isInVain = session.hopeFor('volume', wait);
  session.waitsFor(wait.text);
  for (;;) {
    const askedAt = session.now();
    const exchange = await session.get(step, volumePath(volume));
    const read = beside && (await session.get(`${step}-instance`, instancePath(beside)));
    const shown = successOf(exchange);
    if (isReached(exchange.answer?.status === 404 ? '404' : stringField(shown, 'status'), shown))
      return exchange;
    if (beside !== undefined && isReclaimed(beside, read)) return undefined;
    if (isInVain(exchange) || askedAt - startedAt >= readyTimeoutMs) return undefined;
    await session.sleep(Math.max(askedAt + pollIntervalMs - session.now(), 0));
  }
}

/** Polls a new volume; returns whether it became AVAILABLE. */
export async function pollAvailable(session: Session, step: string, volume: Volume): Promise<boolean> {
  const isAvailable: Reached = (status) => status === 'AVAILABLE';
  const last = await pollVolume(session, step, volume, (...seen) => isAvailable(...seen) || isOver(seen[0]), {
    text: `the volume ${volume.entry.name} to be AVAILABLE`,
    onTheWay: ['CREATING'],
  });
  return stringField(last && successOf(last), 'status') === 'AVAILABLE';
}

/** Polls until an attach is complete or has failed; returns whether the volume is attached to the instance. */
export async function pollAttached(
  session: Session,
  step: string,
  volume: Volume,
  { id }: Pick<Instance, 'id'>,
  beside?: Instance,
): Promise<boolean> {
  const isAttached: Reached = (status, shown) => status === 'ATTACHED' && mayBeAttached(shown, id);
  const last = await pollVolume(session, step, volume, (...seen) => isAttached(...seen) || isOver(seen[0]), {
    text: `the volume ${volume.entry.name} to be attached`,
    onTheWay: ['CREATING', 'ATTACHING'],
    beside,
  });
  return last !== undefined && isAttached(stringField(successOf(last), 'status'), successOf(last));
}

/**
 * Attaches a volume to one instance. The steps are `<step>/post`, `<step>/poll` and `<step>/poll-instance`. Returns
 * whether it is attached.
 */
export async function attach(
  session: Session,
  step: string,
  volume: Volume,
  instance: Instance,
): Promise<boolean> {
  const body = { instance_ids: [instance.id] };
  const asked = await session.post(`${step}/post`, volumePath(volume, '/attach'), body);
  return isSuccess(asked) && (await pollAttached(session, `${step}/poll`, volume, instance, instance));
}

/**
 * Detaches a volume from an instance, or from all if none is named. The steps are `<step>/post` and `<step>/poll`.
 * Returns whether it is detached: from that instance if it is shared, otherwise from all.
 */
export async function detach(
  session: Session,
  step: string,
  volume: Volume,
  instance?: Pick<Instance, 'id'>,
  isShared = false,
): Promise<boolean> {
  const body = instance === undefined ? undefined : { instance_ids: [instance.id] };
  const asked = await session.post(`${step}/post`, volumePath(volume, '/detach'), body);
  if (!isSuccess(asked)) return false;
  const isDetached: Reached = (status, shown) => {
    const holders = stringsField(shown, 'attached_instance_ids');
    if (status === 'ATTACHED') return isShared && instance !== undefined && !holders.includes(instance.id);
    return status === 'AVAILABLE' && holders.length === 0;
  };
  const last = await pollVolume(
    session,
    `${step}/poll`,
    volume,
    (status, shown) => isDetached(status, shown) || isOver(status),
    {
      text: `the volume ${volume.entry.name} to be detached`,
      onTheWay: ['DETACHING'],
      askedAt: asked.endedAt,
    },
  );
  return last !== undefined && isDetached(stringField(successOf(last), 'status'), successOf(last));
}

/** Polls a volume until it reads 404, and marks it as gone in the ledger. */
export async function pollGone(session: Session, step: string, volume: Volume): Promise<boolean> {
  const isEnd: Reached = (status) => status === '404' || status === 'ERROR';
  const last = await pollVolume(session, step, volume, isEnd, {
    text: `the volume ${volume.entry.name} to be gone`,
    onTheWay: ['DELETING'],
  });
  const isGone = last?.answer?.status === 404;
  if (isGone) session.ledger.gone(volume.entry);
  return isGone;
}

/** Whether an ATTACHED volume may be attached to the instance; the list of instances is optional. */
function mayBeAttached(shown: JsonObject | undefined, instanceId: string): boolean {
  return !showsAttachments(shown) || stringsField(shown, 'attached_instance_ids').includes(instanceId);
}

/** Whether a read shows which instances the volume is attached to. */
export function showsAttachments(shown: unknown): boolean {
  return isObject(shown) && Array.isArray(shown['attached_instance_ids']);
}

function isOver(status: string | undefined): boolean {
  return status === '404' || status === 'ERROR' || status === 'DELETING';
}

/** Detaches an attached volume from an empty list of instances. If that detached it, it is attached again. */
export async function detachFromNone(session: Session, volume: Volume, instance: Instance): Promise<void> {
  await session.post('volumes/detach-none/post', volumePath(volume, '/detach'), { instance_ids: [] });
  const read = await session.get('volumes/detach-none/read', volumePath(volume));
  if (stringField(successOf(read), 'status') === 'ATTACHED') return;
  await pollVolume(session, 'volumes/detach-none/poll', volume, (status) => status === 'AVAILABLE', {
    text: `the volume ${volume.entry.name} to be detached`,
    onTheWay: ['DETACHING'],
  });
  await attach(session, 'volumes/attach-anew', volume, instance);
}
