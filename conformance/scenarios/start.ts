import { isSuccess, successOf, textField } from '../wire/json.ts';
import { instancePath } from '../wire/paths.ts';
import { askWithout } from './bad-credentials.ts';
import { MARKER_FILE } from './online.ts';
import { type OnlineInstance, requireOnline } from './primary.ts';
import type { Scenario } from './scenario.ts';
import type { Session } from './session.ts';

/** Starts the stopped instance again, or sees that a platform that cannot leaves it as it is. */
export const start: Scenario = {
  id: 'start',
  level: 'lifecycle',
  title: 'starts the instance again',
  after: ['stop'],
  buys: [],
  async run(session) {
    const found = requireOnline(session, 'start');
    if (found === undefined) return;
    await askWithout(session, 'start', found.instance, { method: 'POST', action: '/start' });
    const asked = await session.post('start/post', instancePath(found.instance, '/start'));
    session.online = undefined;
    await session.get('start/read-at-once', instancePath(found.instance));
    if (isSuccess(asked)) return comeBack(session, found);
    session.whyNotOnline = `the start of the stopped instance was answered ${asked.answer?.status ?? 'not at all'}`;
    const capability = asked.answer?.status === 409 ? 'resuming a stopped instance' : undefined;
    session.skip(['start/poll', 'start/login', 'start/read-file'], session.whyNotOnline, capability);
  },
};

async function comeBack(session: Session, { instance }: OnlineInstance): Promise<void> {
  // The table has no way to PROVISIONING from here; what comes after it is looked at all the same.
  const isOver = (status: string | undefined) =>
    status !== undefined && !['STOPPED', 'PROVISIONING'].includes(status);
  const last = await session.poll('start/poll', instance, isOver, 'the instance to be ONLINE again');
  const shown = last === undefined ? undefined : successOf(last);
  if (shown === undefined || textField(shown, 'status') !== 'ONLINE') {
    session.whyNotOnline = `the started instance is ${textField(shown, 'status') ?? 'not ONLINE'}`;
    return session.skip(['start/login', 'start/read-file'], session.whyNotOnline);
  }
  session.online = shown;
  session.lastOnline = shown;
  await session.login('start/login', shown, 'second');
  await session.login('start/read-file', shown, 'first', `cat ${MARKER_FILE}`);
}
