import { instancePath } from '../../contract/paths.ts';
import { stringField } from '../../text/json.ts';
import { answerOf, isSuccess, statusOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { isStillListed } from '../catalog/catalog.ts';
import type { Placement } from '../placement.ts';
import { requirePrimary, type Scenario } from '../scenario.ts';
import type { Instance, Session } from '../session.ts';
import {
  availableOffers,
  awaitPlacements,
  buyInstance,
  destroyAndConfirm,
  readPlacements,
} from './purchase.ts';

/** Capacity may be sold between the read and the create; this many of the cheapest placements are tried. */
export const MOST_TRIED = 3;
const READS_AT_ONCE = 5;

/** Creates the primary instance of the run. */
export const create: Scenario = {
  id: 'create',
  level: 'lifecycle',
  title: 'creates an instance of the cheapest offer',
  after: ['catalog'],
  buys: [
    { type: 'instance', offer: 'cheapest', what: 'the instance that is started, stopped and destroyed' },
  ],
  async run(session) {
    const instance = await buy(session);
    if (instance === undefined) return;
    session.primary = instance;
    for (let read = 0; read < READS_AT_ONCE; read++)
      await session.get('create/read-at-once', instancePath(instance));
    await session.get('create/list-at-once', '/instances');
  },
};

async function buy(session: Session): Promise<Instance | undefined> {
  const choices = await readPlacements(session, 'create/availability');
  if (choices.length === 0) {
    const others = availableOffers(session);
    session.whyNoPrimary =
      others === 0
        ? 'no offer that it may buy is available'
        : `GET /availability lists no offer that it may buy, and GET /configurations has ${others} with available true`;
    session.skip(['create/post', 'create/read-at-once', 'create/list-at-once'], session.whyNoPrimary);
  }
  for (const placement of nearVolumes(session, choices).slice(0, MOST_TRIED)) {
    const { exchange, instance } = await buyInstance(session, { placement, step: 'create/post' });
    if (instance !== undefined) return instance;
    session.whyNoPrimary = `the create was answered ${exchange.answer?.status ?? exchange.failure?.message}`;
    if (exchange.answer?.status !== 409) break;
    const second = await askAgain(session, placement);
    if (second !== undefined) return second;
  }
  session.skip(
    ['create/read-at-once', 'create/list-at-once'],
    session.whyNoPrimary ?? 'there is no instance',
  );
  return undefined;
}

/** If /availability still lists the refused offer, the same create shows whether it can be bought. */
async function askAgain(session: Session, placement: Placement): Promise<Instance | undefined> {
  const step = 'create/availability-after-refusal';
  if (!(await isStillListed(session, step, placement))) return undefined;
  const { exchange, instance } = await buyInstance(session, { placement, step: 'create/post' });
  if (instance === undefined && exchange.answer?.status === 409) await session.get(step, '/availability');
  return instance;
}

/** Prefers, for the same offer, a region with volumes, which can then be attached. */
function nearVolumes({ locations = [] }: Session, choices: readonly Placement[]): Placement[] {
  const places = new Set(locations.map(({ id }) => id));
  const [cheapest] = choices;
  const isBest = ({ configurationId, region }: Placement): boolean =>
    configurationId === cheapest?.configurationId && places.has(region);
  return [...choices.filter(isBest), ...choices.filter((choice) => !isBest(choice))];
}

/** Waits for the instance to boot, and sends requests that are not allowed while it is PROVISIONING. */
export const boot: Scenario = {
  id: 'boot',
  level: 'lifecycle',
  title: 'waits until the instance is ONLINE',
  after: ['create'],
  buys: [],
  async run(session) {
    const instance = requirePrimary(session, 'boot');
    if (instance === undefined) return;
    await askTooEarly(session, instance);
    await session.get('boot/list', '/instances');
    await waitForOnline(session, instance);
  },
};

/** Reads before and after prove that the instance was PROVISIONING. */
async function askTooEarly(session: Session, instance: Instance): Promise<void> {
  const path = instancePath(instance);
  await session.get('boot/before-stop', path);
  await session.post('boot/stop', instancePath(instance, '/stop'));
  await session.get('boot/after-stop', path);
  await session.get('boot/before-start', path);
  await session.post('boot/start', instancePath(instance, '/start'));
  await session.get('boot/after-start', path);
}

async function waitForOnline(session: Session, instance: Instance): Promise<void> {
  const startedAt = session.now();
  let last = await pollBoot(session, instance);
  if (['STOPPED', 'STOPPING'].includes(stringField(last && successOf(last), 'status') ?? '')) {
    // The machine had booted before the stop arrived, or a check reports a stop that was accepted too early.
    const started = await startAgain(session, instance);
    if (isSuccess(started)) last = await pollBoot(session, instance, ['STOPPED', 'STOPPING']);
    else {
      const another = statusOf(started) === 409 ? await replace(session, instance) : undefined;
      if (another !== undefined) return waitForOnline(session, another);
      session.whyNotOnline = `the instance obeyed the stop that was sent while it booted, and its start was answered ${answerOf(started)}`;
      return;
    }
  }
  const shown = last === undefined ? undefined : successOf(last);
  if (stringField(shown, 'status') === 'ONLINE') {
    session.online = shown;
    session.onlineSince = session.now();
    session.lastOnline = shown;
  } else
    session.whyNotOnline = `the instance did not come ONLINE: ${describe(session, last, session.now() - startedAt)}`;
}

function pollBoot(session: Session, instance: Instance, onTheWay = ['PROVISIONING']) {
  const isSettled = (status: string | undefined) => status !== undefined && !onTheWay.includes(status);
  return session.poll('boot/poll', instance, isSettled, { text: 'the instance to come ONLINE', onTheWay });
}

async function startAgain(session: Session, instance: Instance): Promise<Exchange> {
  const isOver = (status: string | undefined) => status !== undefined && status !== 'STOPPING';
  await session.poll('boot/stop-poll', instance, isOver, {
    text: 'the instance to have stopped',
    onTheWay: ['STOPPING'],
  });
  return session.post('boot/start-again', instancePath(instance, '/start'));
}

/** Buys another primary instance, which is not stopped while it boots, if the platform cannot resume the first. */
async function replace(session: Session, instance: Instance): Promise<Instance | undefined> {
  await destroyAndConfirm(session, 'boot/unresumed', instance);
  session.primary = undefined;
  session.whyNoPrimary =
    'the first instance obeyed the stop that was sent while it booted, cannot be started again, and no other could be bought';
  const [placement] = await awaitPlacements(session, 'boot/availability', {
    offer: instance.placement.configurationId,
    region: instance.region,
  });
  if (placement === undefined) return undefined;
  const another = await buyInstance(session, { placement, step: 'boot/create' });
  session.primary = another.instance;
  return another.instance;
}

function describe({ settings }: Session, last: Exchange | undefined, waitedMs: number): string {
  const patienceS = settings.readyTimeoutMs / 1000;
  if (last === undefined && waitedMs < settings.readyTimeoutMs)
    return 'what it answered could not become ONLINE';
  if (last === undefined)
    return `it was still booting after ${patienceS} s${patienceS < 600 ? ', and the contract allows ten minutes: --ready-timeout-s 600 waits for that' : ''}`;
  const status = stringField(successOf(last), 'status');
  return status === undefined ? `it read ${last.answer?.status}` : `it became ${status}`;
}
