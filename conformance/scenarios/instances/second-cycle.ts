import { instancePath } from '../../contract/paths.ts';
import { type JsonObject, stringField } from '../../text/json.ts';
import { isSuccess, statusOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { marked } from '../machine/printed.ts';
import { requireOnline, type Scenario } from '../scenario.ts';
import type { Instance, Session } from '../session.ts';
import { MARKER_FILE } from './online.ts';

/** A stop or a start is asked for this often, with these pauses, before its 409 counts. */
export const MOST_ASKED = 3;
const BUSY_MS = 10_000;

/** Stops and starts the instance a second time: what worked once must work again. */
export const secondCycle: Scenario = {
  id: 'second-cycle',
  level: 'full',
  title: 'stops and starts the instance a second time',
  after: ['start'],
  buys: [],
  async run(session) {
    const found = requireOnline(session, 'second-cycle');
    if (found === undefined) return;
    const { instance } = found;
    const shown = await stopAndStart(session, instance);
    session.online = undefined;
    if (shown === undefined) return;
    if (stringField(shown, 'public_ip') === undefined) {
      session.whyNotOnline = 'the instance is ONLINE without a public_ip';
      return session.skip(['second-cycle/login', 'second-cycle/read-file'], session.whyNotOnline);
    }
    session.online = shown;
    session.lastOnline = shown;
    await session.login('second-cycle/login', shown, 'first');
    await session.login('second-cycle/read-file', shown, 'second', { command: marked(`cat ${MARKER_FILE}`) });
  },
};

/** Returns the read that shows it ONLINE again. Otherwise notes why it is not, and skips the rest. */
async function stopAndStart(session: Session, instance: Instance): Promise<JsonObject | undefined> {
  const giveUp = (what: string, read: Exchange | undefined): undefined => {
    const status = read && (stringField(successOf(read), 'status') ?? read.answer?.status);
    session.whyNotOnline = `the instance, ${what} a second time, is ${status ?? 'not there yet'}`;
    session.skip(
      ['second-cycle/start', 'second-cycle/login', 'second-cycle/read-file'],
      session.whyNotOnline,
    );
    return undefined;
  };
  const stopped = await ask(session, instance, 'stop');
  if (!isSuccess(stopped)) return giveUp('asked to stop', stopped);
  const off = await session.poll('second-cycle/stop-poll', instance, isNoneOf('STOPPING', 'ONLINE'), {
    text: 'the instance to have stopped again',
    onTheWay: ['STOPPING'],
  });
  if (stringField(off && successOf(off), 'status') !== 'STOPPED') return giveUp('asked to stop', off);
  const started = await ask(session, instance, 'start');
  if (!isSuccess(started)) return giveUp('asked to start', started);
  const back = await session.poll('second-cycle/start-poll', instance, isNoneOf('STOPPED', 'PROVISIONING'), {
    text: 'the instance to be ONLINE once more',
    onTheWay: ['STOPPED', 'PROVISIONING'],
  });
  const shown = back && successOf(back);
  return stringField(shown, 'status') === 'ONLINE' ? shown : giveUp('asked to start', back);
}

/** A platform may be busy for some seconds after a start or a stop, so that a 409 is asked again. */
async function ask(session: Session, instance: Instance, action: 'stop' | 'start'): Promise<Exchange> {
  for (let count = 1; ; count++) {
    const asked = await session.post(`second-cycle/${action}`, instancePath(instance, `/${action}`));
    if (statusOf(asked) !== 409 || count === MOST_ASKED) return asked;
    session.waitsFor(`the instance to be ready for another ${action}`);
    await session.sleep(BUSY_MS);
  }
}

function isNoneOf(...statuses: readonly string[]) {
  return (status: string | undefined): boolean => status !== undefined && !statuses.includes(status);
}
