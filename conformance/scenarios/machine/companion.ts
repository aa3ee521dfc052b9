import { instancePath, volumePath } from '../../contract/paths.ts';
import { BudgetError } from '../../resources/budget.ts';
import { type JsonObject, stringField } from '../../text/json.ts';
import { isSuccess, statusOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { listInRegions } from '../instances/list.ts';
import {
  awaitPlacements,
  buyInstance,
  destroyAndConfirm,
  type Purchase,
  readPlacements,
} from '../instances/purchase.ts';
import { readSideBySide } from '../instances/side-by-side.ts';
import type { Placement } from '../placement.ts';
import { type OnlineInstance, requireOnline, type Scenario } from '../scenario.ts';
import type { Instance, Session } from '../session.ts';
import {
  attach,
  createVolume,
  detach,
  NO_SUCH_SIZE,
  pollAttached,
  pollAvailable,
  pollGone,
  pollVolume,
  type Volume,
} from '../volumes/volume-steps.ts';
import { COMPANION_VOLUME_STEPS, placeOf, waitBackOnline } from '../volumes/volumes.ts';
import { cycleCompanion } from './companion-cycle.ts';
import { firstBootFields, lookAtFirstBoot } from './first-boot.ts';

/** The second instance of a run. */
const companions = new WeakMap<Session, Life>();

/**
 * Creates a second instance with the same name and every optional field of a create. If the run itself holds the only
 * unit, `companionAlone` creates it once that is free.
 */
export const companionCreate: Scenario = {
  id: 'companion-create',
  level: 'full',
  title: 'creates a second instance of the same name, with a first boot of its own',
  after: ['online'],
  isBesideFirst: true,
  buys: [
    { type: 'instance', offer: 'cheapest', what: 'an instance of the same name as the first' },
    { type: 'volume', offer: 'cheapest', what: 'a volume for it' },
  ],
  async run(session) {
    const found = requireOnline(session, 'companion');
    if (found === undefined) return;
    const placement = await choose(session, found.instance);
    if (placement === undefined) {
      session.postponed.add('companion');
      return;
    }
    const volume = await volumeFor(session, placement);
    const instance = await buy(session, placement, found.instance, volume).catch(async (error: unknown) => {
      if (error instanceof BudgetError && volume !== undefined) await release(session, volume);
      throw error;
    });
    if (instance === undefined) return volume && release(session, volume);
    await session.get('companion/read', instancePath(instance));
    await session.get('companion/read-first', instancePath(found.instance));
    companions.set(session, { instance, volume, placement, first: found });
  },
};

/** Logs in to the second instance, and destroys it while it is STOPPED. */
export const companion: Scenario = {
  id: 'companion',
  level: 'full',
  title: 'logs in to the second instance, stops it and destroys it',
  after: ['companion-create'],
  isBesideFirst: true,
  buys: [],
  async run(session) {
    const life = companions.get(session);
    if (life !== undefined) await live(session, life);
  },
};

/** The types of its keys, and those of any provider. */
const EACH_TYPE = ['ed25519', 'ecdsa', 'rsa'] as const;
const ED25519 = ['ed25519', 'ed25519', 'ed25519'] as const;

/** What needs two instances at once. */
const BESIDE_THE_FIRST = ['create', 'create-again', 'read', 'attach-second', 'detach-one'].map(
  (step) => `companion/${step}`,
);

/** The second instance, after the first, where there is one unit. */
export const companionAlone: Scenario = {
  id: 'companion-alone',
  level: 'full',
  title: 'creates the second instance, if there was no unit for it beside the first',
  after: ['companion'],
  buys: [],
  async run(session) {
    if (!session.postponed.delete('companion')) return;
    const { primary } = session;
    if (primary !== undefined && primary.entry.state !== 'gone')
      await destroyAndConfirm(session, 'companion/first', primary);
    const [placement] = await awaitPlacements(session, 'companion/availability');
    if (placement === undefined)
      return session.skip(['companion'], 'no offer is available for a second instance');
    const reason = 'the run itself held the only unit that was available';
    session.skip(BESIDE_THE_FIRST, reason, 'capacity for two instances at once');
    const volume = await volumeFor(session, placement);
    const step = 'companion/control';
    let made = await buyInstance(session, { step, ...wantedOf(placement, volume) });
    if (statusOf(made.exchange) === 400)
      made = await buyInstance(session, { step, ...wantedOf(placement, volume, true) });
    const { instance, exchange } = made;
    if (instance !== undefined) return live(session, { instance, volume, placement });
    session.skip(['companion'], `the create was answered ${answered(exchange)}`);
    if (volume !== undefined) await release(session, volume);
  },
};

interface Life {
  instance: Instance;
  volume: Volume | undefined;
  placement: Placement;
  /** Absent if it is gone. */
  first?: OnlineInstance;
}

async function live(session: Session, { instance, volume, placement, first }: Life): Promise<void> {
  await session.get('companion/list', '/instances');
  const shown = await waitForOnline(session, instance);
  if (shown !== undefined) {
    await lookAtFirstBoot(session, shown, placement);
    const owner = instance.entry.n;
    await session.login('companion/login-second', shown, 'second', { owner });
    await session.login('companion/login-third', shown, 'third', { owner });
    await tryForeignKeys(session, { instance, shown }, first);
    const alive = first === undefined ? [instance] : [first.instance, instance];
    await readSideBySide(session, 'companion', alive);
    await listInRegions(session, 'companion', alive);
  }
  let isStopped = false;
  if (shown !== undefined) {
    const isHeld = volume !== undefined && (await holdVolume(session, volume, instance, first));
    isStopped = await cycleCompanion(session, { instance, shown, volume: isHeld ? volume : undefined });
  }
  if (!isStopped) session.skip(['companion/destroy-stopped'], 'the second instance did not read STOPPED');
  await destroyAndConfirm(session, isStopped ? 'companion/destroy-stopped' : 'companion/destroy', instance);
  if (shown !== undefined && instance.entry.state === 'gone')
    await session.login('companion/login-gone', shown, 'first');
  if (volume !== undefined && volume.entry.state !== 'gone') await release(session, volume);
}

/** Logs in to each of two instances with a key of the other. The keys of the first outlive it. */
async function tryForeignKeys(session: Session, one: OnlineInstance, other?: OnlineInstance): Promise<void> {
  const step = 'companion/login-foreign';
  const owner = session.primary?.entry.n;
  if (owner !== undefined) await session.login(step, one.shown, 'foreign', { owner });
  if (other !== undefined) await session.login(step, other.shown, 'foreign', { owner: one.instance.entry.n });
}

/** Chooses the offer of the first instance if it has another unit, or any offer in its region. */
async function choose(session: Session, { placement: first }: Instance): Promise<Placement | undefined> {
  const choices = await readPlacements(session, 'companion/availability');
  const near = choices.filter(({ region }) => region === first.region);
  return (
    near.find(({ configurationId }) => configurationId === first.configurationId) ?? near[0] ?? choices[0]
  );
}

/** Every optional field. A provider may limit the size of a first boot and the types of keys: `isSmall` has no more than others. */
function wantedOf(placement: Placement, volume: Volume | undefined, isSmall = false) {
  const boot = firstBootFields(placement, isSmall);
  const extra = volume === undefined ? boot : { ...boot, volume_ids: [volume.id] };
  return { placement, extra, keyTypes: isSmall ? ED25519 : EACH_TYPE };
}

/** Creates a volume of another type than the first, if there are several. */
async function volumeFor(session: Session, { region }: Placement): Promise<Volume | undefined> {
  const place = placeOf(session, 'last');
  if (place === undefined) return undefined;
  if (place.region !== region) {
    const capability = 'volumes in the region of the instance';
    session.skip(
      COMPANION_VOLUME_STEPS,
      `the instance is in ${region}, where no volumes are offered`,
      capability,
    );
    return undefined;
  }
  const volume = await createVolume(session, 'companion/volume', place);
  if (volume === undefined) {
    session.skip(COMPANION_VOLUME_STEPS, NO_SUCH_SIZE);
    return undefined;
  }
  if (await pollAvailable(session, 'companion/volume-poll', volume)) return volume;
  session.skip(COMPANION_VOLUME_STEPS, 'the new volume did not come to be AVAILABLE');
  return undefined;
}

/** If the duplicate name is refused, the same create with another name shows whether the name was the reason. */
async function buy(
  session: Session,
  placement: Placement,
  first: Instance,
  volume: Volume | undefined,
): Promise<Instance | undefined> {
  const wanted = wantedOf(placement, volume);
  const asked = await buyInstance(session, { ...wanted, step: 'companion/create', name: first.entry.name });
  if (asked.instance !== undefined) return asked.instance;
  const isSmall = statusOf(asked.exchange) === 400;
  const another = isSmall ? wantedOf(placement, volume, true) : wanted;
  const control = await buyInstance(session, { ...another, step: 'companion/control' });
  if (control.instance === undefined && [asked, control].every(({ exchange }) => statusOf(exchange) === 409))
    session.postponed.add('companion');
  else if (control.instance === undefined)
    session.skip(
      ['companion'],
      `neither this create nor the same one with another name was accepted: ${answered(asked.exchange)}, ${answered(control.exchange)}`,
    );
  else
    await sameNameAgain(session, {
      placement,
      extra: firstBootFields(placement, isSmall),
      name: first.entry.name,
    });
  return control.instance;
}

/** The first refusal may have been for lack of capacity. By now the volume is in use. */
async function sameNameAgain(session: Session, purchase: Omit<Purchase, 'step'>): Promise<void> {
  const step = 'companion/create-again';
  const { instance } = await buyInstance(session, { ...purchase, step, isEndedAtOnce: true });
  if (instance !== undefined) await destroyAndConfirm(session, 'companion/again', instance);
}

function answered({ answer, failure }: Exchange): string {
  return String(answer?.status ?? failure?.message);
}

async function waitForOnline(session: Session, instance: Instance): Promise<JsonObject | undefined> {
  const isOver = (status: string | undefined) => status !== 'PROVISIONING' && status !== undefined;
  const last = await session.poll('companion/poll', instance, isOver, {
    text: 'the second instance to come ONLINE',
    onTheWay: ['PROVISIONING'],
  });
  const shown = last === undefined ? undefined : successOf(last);
  if (stringField(shown, 'status') === 'ONLINE') return shown;
  session.skip(
    ['first-boot', 'stop', 'stopped', 'started', 'attach', 'attach-second', 'detach-one'].map(
      (one) => `companion/${one}`,
    ),
    `the second instance is ${stringField(shown, 'status') ?? 'not ONLINE'}`,
  );
  return undefined;
}

/**
 * The target may ignore inline attachment. Then the volume is attached by a request, as the contract's client does. Returns
 * whether it is attached.
 */
async function holdVolume(
  session: Session,
  volume: Volume,
  instance: Instance,
  beside: OnlineInstance | undefined,
): Promise<boolean> {
  const isAttached = await attach(session, 'companion/attach', volume, instance);
  await waitBackOnline(session, 'companion/attach/instance-poll', instance);
  if (!isAttached) {
    const reason = 'the volume did not come to be attached to the second instance';
    const steps = ['attach-second', 'detach-one', 'released', 'stopped', 'started/read', 'before-stop'];
    session.skip(
      steps.map((step) => `companion/${step}`),
      reason,
    );
    return false;
  }
  if (beside === undefined) return true;
  const { instance: first } = beside;
  const body = { instance_ids: [first.id] };
  const asked = await session.post('companion/attach-second/post', volumePath(volume, '/attach'), body);
  if (!isSuccess(asked)) {
    const reason = `attaching it to a second instance was answered ${answered(asked)}`;
    session.skip(['companion/detach-one'], reason, 'a volume that several instances share');
    return true;
  }
  await pollAttached(session, 'companion/attach-second/poll', volume, first, first);
  await waitBackOnline(session, 'companion/attach-second/instance-poll', first);
  await detach(session, 'companion/detach-one', volume, first, true);
  await waitBackOnline(session, 'companion/detach-one/instance-poll', first);
  return true;
}

/** Its instance is gone, so the volume can be deleted. */
async function release(session: Session, volume: Volume): Promise<void> {
  const isFree = (status: string | undefined) =>
    status !== undefined && !['ATTACHED', 'ATTACHING', 'DETACHING'].includes(status);
  await pollVolume(session, 'companion/released/poll', volume, isFree, {
    text: `the volume ${volume.entry.name} to be free of the destroyed instance`,
    onTheWay: ['DETACHING'],
  });
  await session.delete('companion/released/delete', volumePath(volume));
  await pollGone(session, 'companion/released/poll-gone', volume);
}
