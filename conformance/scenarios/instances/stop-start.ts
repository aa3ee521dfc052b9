import { instancePath } from '../../contract/paths.ts';
import { stringField } from '../../text/json.ts';
import { isSuccess, statusOf, successOf } from '../../transcript/exchange.ts';
import { requestWithoutCredential } from '../access/bad-credentials.ts';
import { READ_FILES } from '../machine/guest.ts';
import { type OnlineInstance, requireOnline, type Scenario } from '../scenario.ts';
import type { Instance, Session } from '../session.ts';
import { readSideBySide } from './side-by-side.ts';

/** Stops the instance, and then stops it again. */
export const stop: Scenario = {
  id: 'stop',
  level: 'lifecycle',
  title: 'stops the instance',
  after: ['observe'],
  buys: [],
  async run(session) {
    const found = requireOnline(session, 'stop');
    if (found === undefined) return;
    const { instance, shown } = found;
    const request = { method: 'POST', action: '/stop' } as const;
    await requestWithoutCredential(session, 'stop', instance, request);
    const asked = await session.post('stop/post', instancePath(instance, '/stop'));
    if (statusOf(asked) === 409) return cannotStop(session);
    await startTooEarly(session, instance);
    await readSideBySide(session, 'stop', [instance]);
    const isOver = (status: string | undefined) =>
      status !== undefined && status !== 'STOPPING' && status !== 'ONLINE';
    const last = await session.poll('stop/poll', instance, isOver, {
      text: 'the instance to have stopped',
      onTheWay: ['STOPPING'],
    });
    const status = last === undefined ? undefined : stringField(successOf(last), 'status');
    if (status !== 'STOPPED') {
      session.whyNotOnline = `the instance was asked to stop and is ${status ?? 'not STOPPED'}`;
      session.skip(
        ['stop/login', 'stop/before-again', 'stop/again', 'stop/after-again'],
        session.whyNotOnline,
      );
      session.online = undefined;
      return;
    }
    await session.login('stop/login', shown, 'first');
    await session.get('stop/before-again', instancePath(instance));
    await session.post('stop/again', instancePath(instance, '/stop'));
    await session.get('stop/after-again', instancePath(instance));
    await session.get('stop/list', '/instances');
  },
};

/** Sends a start while the instance is STOPPING. If it is accepted, the instance is stopped again. */
async function startTooEarly(session: Session, instance: Instance): Promise<void> {
  const before = await session.get('stop/before-start', instancePath(instance));
  if (stringField(successOf(before), 'status') !== 'STOPPING')
    return session.skip(['stop/start'], 'the stop was over at once', 'an instance that is seen STOPPING');
  const asked = await session.post('stop/start', instancePath(instance, '/start'));
  await session.get('stop/after-start', instancePath(instance));
  if (!isSuccess(asked)) return;
  const isOnline = (status: string | undefined): boolean => status === 'ONLINE';
  const back = await session.poll('stop/start-poll', instance, isOnline, {
    text: 'the instance to have started',
    onTheWay: ['STOPPING'],
  });
  if (back !== undefined) await session.post('stop/post-again', instancePath(instance, '/stop'));
}

const AFTERWARDS = [
  'stop/before-start',
  'stop/start',
  'stop/poll',
  'stop/login',
  'stop/before-again',
  'stop/again',
];

function cannotStop(session: Session): void {
  const { reason, capability } = NOT_STOPPABLE;
  session.whyNotOnline = reason;
  session.online = undefined;
  session.skip([...AFTERWARDS, 'start', 'second-cycle'], reason, capability);
}

/** Starts the stopped instance again. If the platform cannot, confirms that it stays unchanged. */
export const start: Scenario = {
  id: 'start',
  level: 'lifecycle',
  title: 'starts the instance again',
  after: ['stop'],
  buys: [],
  async run(session) {
    const found = requireOnline(session, 'start');
    if (found === undefined) return;
    await requestWithoutCredential(session, 'start', found.instance, { method: 'POST', action: '/start' });
    const asked = await session.post('start/post', instancePath(found.instance, '/start'));
    session.online = undefined;
    await session.get('start/read-at-once', instancePath(found.instance));
    if (isSuccess(asked)) return waitForOnlineAgain(session, found);
    session.whyNotOnline = `the start of the stopped instance was answered ${asked.answer?.status ?? 'not at all'}`;
    const capability = asked.answer?.status === 409 ? 'resuming a stopped instance' : undefined;
    const steps = ['start/poll', 'start/login', 'start/read-file', 'second-cycle'];
    session.skip(steps, session.whyNotOnline, capability);
  },
};

async function waitForOnlineAgain(session: Session, { instance }: OnlineInstance): Promise<void> {
  // The contract's table has no PROVISIONING here, and does not show transitions other than its own.
  const isOver = (status: string | undefined) =>
    status !== undefined && !['STOPPED', 'PROVISIONING'].includes(status);
  const last = await session.poll('start/poll', instance, isOver, {
    text: 'the instance to be ONLINE again',
    onTheWay: ['STOPPED', 'PROVISIONING'],
  });
  const shown = last === undefined ? undefined : successOf(last);
  if (shown === undefined || stringField(shown, 'status') !== 'ONLINE') {
    session.whyNotOnline = `the started instance is ${stringField(shown, 'status') ?? 'not ONLINE'}`;
    return session.skip(['start/login', 'start/read-file'], session.whyNotOnline);
  }
  session.online = shown;
  session.lastOnline = shown;
  await session.login('start/login', shown, 'second');
  await session.login('start/read-file', shown, 'first', { command: READ_FILES });
}

/** The meaning of a 409 to a stop of an ONLINE instance: the contract speaks of instances that are stoppable. */
export const NOT_STOPPABLE = {
  reason: 'the stop of the ONLINE instance was answered 409',
  capability: 'stopping an ONLINE instance',
} as const;
