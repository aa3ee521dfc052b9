import { volumePath } from '../../contract/paths.ts';
import { type JsonObject, stringField, stringsField } from '../../text/json.ts';
import { isSuccess, successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { BAD_CREDENTIALS } from '../access/bad-credentials.ts';
import { BadCreates } from '../bad-creates.ts';
import { NO_SUCH_ID } from '../instances/refusal-cases.ts';
import { isReclaimed, type OnlineInstance, RECLAIMED, requireOnline, type Scenario } from '../scenario.ts';
import type { Instance, Session } from '../session.ts';
import { UNKNOWN_TYPE, VOLUME_REFUSAL_CASES } from './refusal-cases.ts';
import {
  attach,
  createVolume,
  detach,
  detachFromNone,
  NO_SUCH_SIZE,
  pollAttached,
  pollAvailable,
  pollGone,
  type Volume,
  type VolumePlace,
  volumeBody,
} from './volume-steps.ts';

/** The steps of the scenario `companion` that need its volume. */
export const COMPANION_VOLUME_STEPS = [
  'volume',
  'volume-poll',
  'attach',
  'attach-second',
  'detach-one',
  'released',
  'stopped',
  'started/read',
  'before-stop',
].map((step) => `companion/${step}`);
/** How many more reads confirm that a 404 is permanent. */
const READS_OF_GONE = 3;

/** All operations on a volume, with the instance that is ONLINE. */
export const volumes: Scenario = {
  id: 'volumes',
  level: 'full',
  title: 'creates, attaches, detaches and deletes volumes',
  after: ['online'],
  isBesideFirst: true,
  buys: [
    { type: 'volume', offer: 'cheapest', what: 'the volume that is attached and detached' },
    { type: 'volume', offer: 'cheapest', what: 'a volume that is attached as it is created' },
  ],
  async run(session) {
    const place = placeOf(session);
    if (place === undefined) return;
    const volume = await createVolume(session, 'volumes/create', place);
    await invalidCreates(session, place, volume?.sizeGb);
    if (volume === undefined) return session.skip(['volumes'], NO_SUCH_SIZE);
    if (!(await pollAvailable(session, 'volumes/create-poll', volume)))
      return session.skip(['volumes'], 'the new volume did not come to be AVAILABLE');
    const isFree = await withInstance(session, volume, place);
    if (isFree) await deletion(session, volume);
    else session.skip(['volumes/delete'], 'the volume could not be detached');
  },
};

/**
 * The location for volumes, preferably the instance's region. If there is none, skips the steps and returns undefined.
 */
export function placeOf(session: Session, type: 'first' | 'last' = 'first'): VolumePlace | undefined {
  const { locations, primary } = session;
  const own = locations?.find((location) => location['id'] === primary?.region);
  const location: JsonObject | undefined = own ?? locations?.[0];
  const region = stringField(location, 'id');
  if (region !== undefined)
    return { region, type: stringsField(location, 'types').at(type === 'first' ? 0 : -1) };
  const reason =
    locations === undefined
      ? 'GET /volumes/locations is not there'
      : 'GET /volumes/locations lists no location';
  session.skip(['volumes', ...COMPANION_VOLUME_STEPS], reason, 'storage tier');
  return undefined;
}

/**
 * Uses a size that was accepted, so that the defect is the only one. The clean-up deletes volumes that are created by
 * mistake.
 */
async function invalidCreates(session: Session, place: VolumePlace, sizeGb?: number): Promise<void> {
  const cases = place.type === undefined ? VOLUME_REFUSAL_CASES : [...VOLUME_REFUSAL_CASES, UNKNOWN_TYPE];
  const family = new BadCreates(session);
  for (const { step, body } of cases) {
    if (!family.mayAsk(step)) continue;
    const { exchange } = await session.create({
      type: 'volume',
      step,
      body: ({ name }) => body(volumeBody(place, name, sizeGb)),
      region: place.region,
      ...session.volumePrice(sizeGb ?? 0),
    });
    if (isSuccess(exchange)) family.accepted();
  }
}

/** Returns whether the volume is detached afterwards. */
async function withInstance(session: Session, volume: Volume, place: VolumePlace): Promise<boolean> {
  const found = requireOnline(session, 'volumes/attach');
  if (found === undefined) {
    session.skip(WITH_INSTANCE, session.whyNoPrimary ?? session.whyNotOnline ?? 'the instance is not ONLINE');
    return true;
  }
  if (found.instance.region !== place.region) {
    const reason = `the instance is in ${found.instance.region}, where no volumes are offered`;
    session.skip(WITH_INSTANCE, reason, 'volumes in the region of the instance');
    return true;
  }
  const isFree = await attachments(session, volume, found);
  if (!isPrimaryReclaimed(session)) await inline(session, place, found.instance);
  if (!isPrimaryReclaimed(session)) await instanceAfterwards(session, found.instance);
  if (!isPrimaryReclaimed(session)) return isFree;
  session.skip([...WITH_INSTANCE, 'volumes/delete'], RECLAIMED);
  return isFree;
}

const WITH_INSTANCE = [
  'attach',
  'no-credential',
  'wrong-credential',
  'again',
  'detach-none',
  'empty',
  'nowhere',
  'delete-attached',
  'detach-one',
  'attach-for-all',
  'detach-all',
  'inline',
  'force-delete',
  'instance',
].map((step) => `volumes/${step}`);

/** Whether the primary instance was reclaimed; the skipped steps are then recorded at the end. */
function isPrimaryReclaimed({ online, whyNotOnline }: Session): boolean {
  return online === undefined && whyNotOnline === RECLAIMED;
}

async function attachments(session: Session, volume: Volume, { instance }: OnlineInstance): Promise<boolean> {
  const isAttached = await attach(session, 'volumes/attach', volume, instance);
  await waitBackOnline(session, 'volumes/attach/instance-poll', instance);
  if (isPrimaryReclaimed(session)) return false;
  await refusedAttaches(session, volume);
  if (!isAttached) {
    const steps = [
      'no-credential',
      'wrong-credential',
      'again',
      'detach-none',
      'delete-attached',
      'attach-for-all',
      'detach-all',
    ].map((step) => `volumes/${step}`);
    session.skip(steps, 'the volume did not come to be attached');
  } else if (!(await whileAttached(session, volume, instance))) {
    const steps = ['delete-attached', 'detach-one', 'attach-for-all', 'detach-all'];
    session.skip(
      steps.map((step) => `volumes/${step}`),
      'the volume was deleted while it was attached',
    );
    return false;
  }
  if (isPrimaryReclaimed(session)) return false;
  return detachments(session, volume, instance, isAttached);
}

async function detachments(
  session: Session,
  volume: Volume,
  instance: Instance,
  isAttached: boolean,
): Promise<boolean> {
  const isFree = await detach(session, 'volumes/detach-one', volume, instance);
  await waitBackOnline(session, 'volumes/detach-one/instance-poll', instance);
  if (!isAttached || isPrimaryReclaimed(session)) return isFree;
  if (isFree) {
    await attach(session, 'volumes/attach-for-all', volume, instance);
    await waitBackOnline(session, 'volumes/attach-for-all/instance-poll', instance);
    if (isPrimaryReclaimed(session)) return false;
  }
  const isDetached = await detach(session, 'volumes/detach-all', volume);
  await waitBackOnline(session, 'volumes/detach-all/instance-poll', instance);
  return isDetached;
}

async function refusedAttaches(session: Session, volume: Volume): Promise<void> {
  const path = volumePath(volume, '/attach');
  await session.post('volumes/empty/list', path, { instance_ids: [] });
  await session.post('volumes/empty/no-field', path, {});
  await session.post('volumes/nowhere/post', path, { instance_ids: [NO_SUCH_ID] });
  await session.get('volumes/nowhere/read', volumePath(volume));
}

/** Returns whether the volume still exists. */
async function whileAttached(session: Session, volume: Volume, instance: Instance): Promise<boolean> {
  const body = { instance_ids: [instance.id] };
  // A drawn number of times: a server that fails each third attach cannot be in step with the run.
  for (let left = 1 + Math.floor(session.draws.fraction('volumes/again') * 3); left > 0; left--)
    await session.post('volumes/again/post', volumePath(volume, '/attach'), body);
  await pollAttached(session, 'volumes/again/poll', volume, instance, instance);
  await waitBackOnline(session, 'volumes/again/instance-poll', instance);
  if (isPrimaryReclaimed(session)) return true;
  await detachFromNone(session, volume, instance);
  if (!(await withoutCredential(session, volume, instance))) return false;
  const asked = await session.delete('volumes/delete-attached/delete', volumePath(volume));
  await session.get('volumes/delete-attached/read', volumePath(volume));
  return !isSuccess(asked);
}

/**
 * Reads, detaches and deletes with each invalid credential, with valid reads before and after. If that detached the
 * volume, it is attached again. Returns whether the volume still exists.
 */
async function withoutCredential(session: Session, volume: Volume, instance: Instance): Promise<boolean> {
  const path = volumePath(volume);
  let after: Exchange | undefined;
  for (const [name, credentials] of Object.entries(BAD_CREDENTIALS)) {
    const step = `volumes/${name}`;
    await session.get(`${step}/before`, path);
    await session.send(`${step}/read`, { method: 'GET', path, ...credentials });
    await session.send(`${step}/detach`, {
      method: 'POST',
      path: volumePath(volume, '/detach'),
      ...credentials,
    });
    await session.send(`${step}/delete`, { method: 'DELETE', path, ...credentials });
    after = await session.get(`${step}/after`, path);
  }
  if (after?.answer?.status === 404) return false;
  if (after === undefined || stringField(successOf(after), 'status') === 'ATTACHED') return true;
  await attach(session, 'volumes/attach-anew', volume, instance);
  await waitBackOnline(session, 'volumes/attach-anew/instance-poll', instance);
  return true;
}

/** A volume that is attached by its create, and deleted as soon as its detach is accepted. */
async function inline(session: Session, place: VolumePlace, instance: Instance): Promise<void> {
  const volume = await createVolume(session, 'volumes/inline/create', place, { instance_ids: [instance.id] });
  if (volume === undefined)
    return session.skip(['volumes/inline', 'volumes/force-delete'], 'no second volume could be created');
  const isAttached = await pollAttached(session, 'volumes/inline/poll', volume, instance, instance);
  await waitBackOnline(session, 'volumes/inline/instance-poll', instance);
  if (!isAttached && !isPrimaryReclaimed(session)) {
    await attach(session, 'volumes/force-delete/attach', volume, instance);
    await waitBackOnline(session, 'volumes/force-delete/instance-poll', instance);
  }
  if (isPrimaryReclaimed(session)) return;
  const asked = await session.post('volumes/force-delete/detach', volumePath(volume, '/detach'));
  if (!isSuccess(asked))
    return session.skip(['volumes/force-delete/delete'], 'the detach before it was not accepted');
  await session.delete('volumes/force-delete/delete', volumePath(volume));
  await pollGone(session, 'volumes/force-delete/poll', volume);
}

async function deletion(session: Session, volume: Volume): Promise<void> {
  await session.delete('volumes/delete/delete', volumePath(volume));
  if (!(await pollGone(session, 'volumes/delete/poll', volume)))
    return session.skip(
      ['volumes/delete/again', 'volumes/delete/read'],
      'the volume did not come to read 404',
    );
  for (let read = 0; read < READS_OF_GONE; read++) {
    await session.get('volumes/delete/read', volumePath(volume));
    await session.sleep(session.settings.pollIntervalMs);
  }
  await session.delete('volumes/delete/again', volumePath(volume));
  await session.get('volumes/delete/read', volumePath(volume));
}

/** Waits for the instance to be ONLINE again: an attach or a detach may stop and start it. */
export async function waitBackOnline(
  session: Session,
  step: `${string}poll`,
  instance: Instance,
): Promise<void> {
  const isOver = (status: string | undefined) =>
    session.stuck.has(instance.id) ||
    (status !== undefined && !['STOPPING', 'STOPPED', 'PROVISIONING'].includes(status));
  const last = await session.poll(step, instance, isOver, {
    text: 'the instance to be ONLINE again',
    onTheWay: ['STOPPING', 'STOPPED', 'PROVISIONING'],
  });
  const shown = last === undefined ? undefined : successOf(last);
  const isOnline = stringField(shown, 'status') === 'ONLINE';
  if (last === undefined) session.stuck.add(instance.id);
  if (instance !== session.primary) return;
  session.online = isOnline ? shown : undefined;
  if (isOnline) session.lastOnline = shown;
  else if (isReclaimed(instance, last)) session.whyNotOnline = RECLAIMED;
  else
    session.whyNotOnline = 'the instance was not ONLINE again after volumes had been attached and detached';
}

async function instanceAfterwards(session: Session, instance: Instance): Promise<void> {
  await waitBackOnline(session, 'volumes/instance/poll', instance);
  if (session.online !== undefined) await session.login('volumes/instance/login', session.online, 'first');
  else session.skip(['volumes/instance/login'], session.whyNotOnline ?? 'the instance is not ONLINE');
}
