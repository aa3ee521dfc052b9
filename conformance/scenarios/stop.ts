import { successOf, textField } from '../wire/json.ts';
import { instancePath } from '../wire/paths.ts';
import { requireOnline } from './primary.ts';
import type { Scenario } from './scenario.ts';

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
    await session.post('stop/post', instancePath(instance, '/stop'));
    await session.get('stop/read-at-once', instancePath(instance));
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
