import { instancePath } from '../../contract/paths.ts';
import { type JsonObject, stringsField } from '../../text/json.ts';
import { MEASURE, writeFiles } from '../machine/guest.ts';
import { type OnlineInstance, requireOnline, type Scenario } from '../scenario.ts';
import type { Session } from '../session.ts';
import { readSideBySide } from './side-by-side.ts';

/** Logs in, and sends requests that are not allowed while ONLINE. */
export const online: Scenario = {
  id: 'online',
  level: 'lifecycle',
  title: 'logs in to the instance',
  after: ['boot'],
  buys: [],
  async run(session) {
    const found = requireOnline(session, 'online');
    if (found === undefined) return;
    const { instance, shown } = found;
    await readSideBySide(session, 'online', [instance]);
    await loginTwice(session, shown, 'first');
    await loginTwice(session, shown, 'second');
    await session.login('online/login-other', shown, 'other');
    await session.login('online/write-file', shown, 'first', {
      command: writeFiles(instance.entry.name),
    });
    // It may take long to ask several GPUs.
    await session.login('online/measure', shown, 'first', { command: MEASURE });
    await withoutCredential(session, found);
    await session.get('online/without-region', instancePath({ id: instance.id }));
    await session.get('online/before-start', instancePath(instance));
    await session.post('online/start', instancePath(instance, '/start'));
    await session.get('online/after-start', instancePath(instance));
    await lists(session, found);
  },
};

/** Retries a failed login once, so that a sporadic failure is visible. */
async function loginTwice(session: Session, shown: JsonObject, key: 'first' | 'second'): Promise<void> {
  const { rung } = await session.login(`online/login-${key}`, shown, key);
  if (rung === 'done' || rung === 'execute') return;
  await session.sleep(Math.min(session.settings.pollIntervalMs, 5000));
  await session.login(`online/login-${key}`, shown, key);
}

async function withoutCredential(session: Session, { instance }: OnlineInstance): Promise<void> {
  const path = instancePath(instance);
  const altered = { credential: 'altered', authorization: 'Bearer berth-conformance-no-such-key' } as const;
  await session.send('online/no-credential', { method: 'GET', path, credential: 'none' });
  await session.send('online/wrong-credential', { method: 'GET', path, ...altered });
  const unknown = instancePath({ id: `${instance.id}-berth-conformance`, region: instance.region });
  await session.send('online/wrong-credential-unknown', { method: 'GET', path: unknown, ...altered });
}

/** Lists between two reads, several times, since one difference may be a change in between. */
async function lists(session: Session, { instance }: OnlineInstance): Promise<void> {
  for (let round = 0; round < 3; round++) {
    await session.get('online/before-list', instancePath(instance));
    await session.get('online/list', '/instances');
  }
  await session.get('online/before-list', instancePath(instance));
  await session.get('online/list-own-region', `/instances?region=${encodeURIComponent(instance.region)}`);
  const others = new Set(session.configurations.flatMap((offer) => stringsField(offer, 'regions')));
  others.delete(instance.region);
  const [other] = others;
  if (other === undefined)
    session.skip(['online/list-other-region'], 'all offers are in one region', 'a second region');
  else await session.get('online/list-other-region', `/instances?region=${encodeURIComponent(other)}`);
}
