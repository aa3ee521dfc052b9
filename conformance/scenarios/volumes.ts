import { isSuccess, type JsonObject, successOf, textField, textsField } from '../wire/json.ts';
import { volumePath } from '../wire/paths.ts';
import { type OnlineInstance, requireOnline } from './primary.ts';
import { NO_SUCH_ID } from './refusal-cases.ts';
import type { Scenario } from './scenario.ts';
import type { Instance, Session } from './session.ts';
import { UNKNOWN_TYPE, VOLUME_REFUSAL_CASES } from './volume-refusal-cases.ts';
import {
  attach,
  createVolume,
  detach,
  pollAttached,
  pollAvailable,
  pollGone,
  type Volume,
  type VolumePlace,
  volumeBody,
} from './volume-steps.ts';

/** What the scenario `companion` does with its volume. */
export const COMPANION_VOLUME_STEPS = [
  'volume',
  'volume-poll',
  'attach',
  'attach-second',
  'detach-one',
  'released',
].map((step) => `companion/${step}`);
/** How often a 404 is read again, to see that it is for good. */
const READS_OF_GONE = 3;

/** All that can be done with a volume, and with the instance that is ONLINE. */
export const volumes: Scenario = {
  id: 'volumes',
  level: 'full',
  title: 'creates, attaches, detaches and deletes volumes',
  after: ['online'],
  buys: [
    { type: 'volume', offer: 'cheapest', what: 'the volume that is attached and detached' },
    { type: 'volume', offer: 'cheapest', what: 'a volume that is attached as it is created' },
  ],
  async run(session) {
    const place = placeOf(session);
    if (place === undefined) return;
    await invalidCreates(session, place);
    const volume = await createVolume(session, 'volumes/create', place);
    if (volume === undefined)
      return session.skip(['volumes'], 'no volume could be created, of 10 GB or of 100 GB');
    if (!(await pollAvailable(session, 'volumes/create-poll', volume)))
      return session.skip(['volumes'], 'the new volume did not come to be AVAILABLE');
    const isFree = await withInstance(session, volume, place);
    if (isFree) await deletion(session, volume);
    else session.skip(['volumes/delete'], 'the volume could not be detached');
  },
};

/** The instance's region where it is a location. Undefined once it is said that there is no place. */
export function placeOf(session: Session, type: 'first' | 'last' = 'first'): VolumePlace | undefined {
  const { locations, primary } = session;
  const own = locations?.find((location) => location['id'] === primary?.region);
  const location: JsonObject | undefined = own ?? locations?.[0];
  const region = textField(location, 'id');
  if (region !== undefined)
    return { region, type: textsField(location, 'types').at(type === 'first' ? 0 : -1) };
  const reason =
    locations === undefined
      ? 'GET /volumes/locations is not there'
      : 'GET /volumes/locations lists no location';
  session.skip(['volumes', ...COMPANION_VOLUME_STEPS], reason, 'storage tier');
  return undefined;
}

/** What is made by mistake is deleted by the clean-up. */
async function invalidCreates(session: Session, place: VolumePlace): Promise<void> {
  const cases = place.type === undefined ? VOLUME_REFUSAL_CASES : [...VOLUME_REFUSAL_CASES, UNKNOWN_TYPE];
  for (const { step, body } of cases)
    await session.create({
      type: 'volume',
      step,
      body: (name) => body(volumeBody(place, name)),
      region: place.region,
    });
}

/** Says whether the volume is attached to nothing afterwards. */
async function withInstance(session: Session, volume: Volume, place: VolumePlace): Promise<boolean> {
  const steps = [
    ...[
      'attach',
      'again',
      'empty',
      'nowhere',
      'delete-attached',
      'detach-one',
      'attach-for-all',
      'detach-all',
    ],
    ...['inline', 'force-delete', 'instance'],
  ].map((step) => `volumes/${step}`);
  const found = requireOnline(session, 'volumes/attach');
  if (found === undefined) {
    session.skip(steps, session.whyNoPrimary ?? session.whyNotOnline ?? 'the instance is not ONLINE');
    return true;
  }
  if (found.instance.region !== place.region) {
    const reason = `the instance is in ${found.instance.region}, where no volumes are offered`;
    session.skip(steps, reason, 'volumes in the region of the instance');
    return true;
  }
  const isFree = await attachments(session, volume, found);
  await inline(session, place, found.instance);
  await instanceAfterwards(session, found.instance);
  return isFree;
}

async function attachments(session: Session, volume: Volume, { instance }: OnlineInstance): Promise<boolean> {
  const isAttached = await attach(session, 'volumes/attach', volume, instance);
  await backOnline(session, 'volumes/attach/instance', instance);
  await refusedAttaches(session, volume);
  if (!isAttached) {
    const steps = ['again', 'delete-attached', 'attach-for-all', 'detach-all'].map(
      (step) => `volumes/${step}`,
    );
    session.skip(steps, 'the volume did not come to be attached');
  } else if (!(await whileAttached(session, volume, instance))) {
    const steps = ['detach-one', 'attach-for-all', 'detach-all'].map((step) => `volumes/${step}`);
    session.skip(steps, 'the volume was deleted while it was attached');
    return false;
  }
  const isFree = await detach(session, 'volumes/detach-one', volume, instance);
  await backOnline(session, 'volumes/detach-one/instance', instance);
  if (!isAttached) return isFree;
  if (isFree) {
    await attach(session, 'volumes/attach-for-all', volume, instance);
    await backOnline(session, 'volumes/attach-for-all/instance', instance);
  }
  const isDetached = await detach(session, 'volumes/detach-all', volume);
  await backOnline(session, 'volumes/detach-all/instance', instance);
  return isDetached;
}

async function refusedAttaches(session: Session, volume: Volume): Promise<void> {
  const path = volumePath(volume, '/attach');
  await session.post('volumes/empty/list', path, { instance_ids: [] });
  await session.post('volumes/empty/no-field', path, {});
  await session.post('volumes/nowhere/post', path, { instance_ids: [NO_SUCH_ID] });
  await session.get('volumes/nowhere/read', volumePath(volume));
}

/** Says whether the volume is still there. */
async function whileAttached(session: Session, volume: Volume, instance: Instance): Promise<boolean> {
  const body = { instance_ids: [instance.id] };
  await session.post('volumes/again/post', volumePath(volume, '/attach'), body);
  await pollAttached(session, 'volumes/again/poll', volume, instance, instance);
  await backOnline(session, 'volumes/again/instance', instance);
  const asked = await session.delete('volumes/delete-attached/delete', volumePath(volume));
  await session.get('volumes/delete-attached/read', volumePath(volume));
  return !isSuccess(asked);
}

/** A volume that is attached by its create, and deleted as soon as its detach is accepted. */
async function inline(session: Session, place: VolumePlace, instance: Instance): Promise<void> {
  const volume = await createVolume(session, 'volumes/inline/create', place, { instance_ids: [instance.id] });
  if (volume === undefined)
    return session.skip(['volumes/inline', 'volumes/force-delete'], 'no second volume could be created');
  const isAttached = await pollAttached(session, 'volumes/inline/poll', volume, instance, instance);
  await backOnline(session, 'volumes/inline/instance', instance);
  if (!isAttached) {
    await attach(session, 'volumes/force-delete/attach', volume, instance);
    await backOnline(session, 'volumes/force-delete/instance', instance);
  }
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

/** An attach or a detach may have stopped the instance and started it again. */
export async function backOnline(session: Session, step: string, instance: Instance): Promise<void> {
  const isOver = (status: string | undefined) =>
    status !== undefined && !['STOPPING', 'STOPPED', 'PROVISIONING'].includes(status);
  const last = await session.poll(step, instance, isOver, 'the instance to be ONLINE again');
  const shown = last === undefined ? undefined : successOf(last);
  const isOnline = textField(shown, 'status') === 'ONLINE';
  if (instance !== session.primary) return;
  session.online = isOnline ? shown : undefined;
  if (isOnline) session.lastOnline = shown;
  else
    session.whyNotOnline = 'the instance was not ONLINE again after volumes had been attached and detached';
}

async function instanceAfterwards(session: Session, instance: Instance): Promise<void> {
  await backOnline(session, 'volumes/instance/poll', instance);
  if (session.online !== undefined) await session.login('volumes/instance/login', session.online, 'first');
  else session.skip(['volumes/instance/login'], session.whyNotOnline ?? 'the instance is not ONLINE');
}
