import { isSuccess, statusOf, successOf, textField } from '../wire/json.ts';
import { instancePath } from '../wire/paths.ts';
import { askWithout } from './bad-credentials.ts';
import { notStoppable } from './not-stoppable.ts';
import { requireOnline } from './primary.ts';
import type { Scenario } from './scenario.ts';
import type { Instance, Session } from './session.ts';

/** Stops the instance, and asks for a stop of what is stopped. */
export const stop: Scenario = {
  id: 'stop',
  level: 'lifecycle',
  title: 'stops the instance',
  after: ['online'],
  buys: [],
  async run(session) {
    const found = requireOnline(session, 'stop');
    if (found === undefined) return;
    const { instance, shown } = found;
    await askWithout(session, 'stop', instance, { method: 'POST', action: '/stop' });
    const asked = await session.post('stop/post', instancePath(instance, '/stop'));
    if (statusOf(asked) === 409) return cannotStop(session, instance);
    await startTooEarly(session, instance);
    const isOver = (status: string | undefined) => status !== 'STOPPING' && status !== 'ONLINE';
    const last = await session.poll('stop/poll', instance, isOver, 'the instance to have stopped');
    const status = last === undefined ? undefined : textField(successOf(last), 'status');
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

/** Asks for a start while it is STOPPING. One that is accepted, be it too early or just in time, is stopped again. */
async function startTooEarly(session: Session, instance: Instance): Promise<void> {
  const before = await session.get('stop/before-start', instancePath(instance));
  if (textField(successOf(before), 'status') !== 'STOPPING')
    return session.skip(['stop/start'], 'the stop was over at once', 'an instance that is seen STOPPING');
  const asked = await session.post('stop/start', instancePath(instance, '/start'));
  await session.get('stop/after-start', instancePath(instance));
  if (!isSuccess(asked)) return;
  const isOnline = (status: string | undefined): boolean => status === 'ONLINE';
  const back = await session.poll('stop/poll-start', instance, isOnline, 'the instance to have started');
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

function cannotStop(session: Session, instance: Instance): void {
  const { reason, capability } = notStoppable(instance);
  session.whyNotOnline = reason;
  session.online = undefined;
  session.skip([...AFTERWARDS, 'start'], reason, capability);
}
