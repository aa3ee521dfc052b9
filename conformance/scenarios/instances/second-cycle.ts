import { type JsonObject, stringField } from '../../text/json.ts';
import { successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { READ_FILES } from '../machine/guest.ts';
import { requireOnline, type Scenario } from '../scenario.ts';
import type { Instance, Session } from '../session.ts';
import { stopOrStart } from './stop-or-start.ts';

/** A stop or a start is asked for this often before its 409 counts. */
export const MOST_ASKED = 3;

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
    await session.login('second-cycle/read-file', shown, 'second', { command: READ_FILES });
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
  const off = await stopOrStart(session, 'second-cycle/stop', instance, 'stop', MOST_ASKED);
  if (stringField(off && successOf(off), 'status') !== 'STOPPED') return giveUp('asked to stop', off);
  const back = await stopOrStart(session, 'second-cycle/start', instance, 'start', MOST_ASKED);
  const shown = back && successOf(back);
  return stringField(shown, 'status') === 'ONLINE' ? shown : giveUp('asked to start', back);
}
