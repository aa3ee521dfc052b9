import { instancePath } from '../../contract/paths.ts';
import { isConfirmedGone } from '../../resources/presence.ts';
import type { Exchange } from '../../transcript/records.ts';
import { requestWithoutCredential } from '../access/bad-credentials.ts';
import { requirePrimary, type Scenario } from '../scenario.ts';
import type { Instance, Session } from '../session.ts';
import { MOST_TRIED } from './create.ts';
import { buyInstance, confirmGone, placementsNow } from './purchase.ts';

/** How many more reads confirm that a 404 is permanent. */
const READS_OF_GONE = 5;

/** Destroys the instance, and checks that it stays destroyed. */
export const destroy: Scenario = {
  id: 'destroy',
  level: 'lifecycle',
  title: 'destroys the instance, and reads it until it is gone',
  after: ['create'],
  buys: [],
  async run(session) {
    const instance = requirePrimary(session, 'destroy');
    if (instance === undefined) return;
    const shown = session.lastOnline;
    const isOnline = await requestWithoutCredential(session, 'destroy', instance, { method: 'DELETE' });
    if (isOnline && session.online !== undefined)
      await session.login('destroy/login-before', session.online, 'first');
    await session.delete('destroy/delete', instancePath(instance));
    session.online = undefined;
    session.whyNotOnline = 'the instance is destroyed';
    await session.get('destroy/read-at-once', instancePath(instance));
    await session.post('destroy/stop', instancePath(instance, '/stop'));
    await session.post('destroy/start', instancePath(instance, '/start'));
    await session.get('destroy/read-after', instancePath(instance));
    await session.delete('destroy/delete-again', instancePath(instance));
    await session.delete('destroy/delete-without-region', instancePath({ id: instance.id }));
    const last = await untilDestroyed(session, instance);
    if (last === undefined) {
      const steps = ['destroy/list', 'destroy/login', 'destroy/gone'];
      return session.skip(steps, `the instance was not destroyed within ${seconds(session)} s`);
    }
    const list = await session.get('destroy/list', '/instances');
    if (isConfirmedGone(instance.id, last, list)) session.ledger.gone(instance.entry);
    if (shown === undefined) session.skip(['destroy/login'], 'the instance was never ONLINE');
    else await session.login('destroy/login', shown, 'first');
    if (await isGone(session, instance)) await afterwards(session, instance);
    else session.skip(['destroy/gone'], 'the instance did not come to read 404');
  },
};

const WAITING = { text: 'the instance to be gone', onTheWay: ['DESTROYING'] };

/** DESTROYED, which may precede the 404, already ends billing. */
function untilDestroyed(session: Session, instance: Instance): Promise<Exchange | undefined> {
  const isEnd = (status: string | undefined): boolean => status === 'DESTROYED' || status === '404';
  return session.poll('destroy/poll', instance, isEnd, WAITING);
}

async function isGone(session: Session, instance: Instance): Promise<boolean> {
  const last = await session.poll('destroy/poll', instance, (status) => status === '404', WAITING);
  return last !== undefined;
}

async function afterwards(session: Session, instance: Instance): Promise<void> {
  await session.get('destroy/gone/list', '/instances');
  await session.delete('destroy/gone/delete', instancePath(instance));
  await session.post('destroy/gone/stop', instancePath(instance, '/stop'));
  await session.post('destroy/gone/start', instancePath(instance, '/start'));
  for (let read = 0; read < READS_OF_GONE; read++) {
    await session.get('destroy/gone/read', instancePath(instance));
    if (read < READS_OF_GONE - 1) await session.sleep(session.settings.pollIntervalMs);
  }
}

function seconds({ settings }: Session): number {
  return settings.readyTimeoutMs / 1000;
}

/** Destroys an instance right after its create, by two requests at the same moment. */
export const earlyDelete: Scenario = {
  id: 'early-delete',
  level: 'full',
  title: 'destroys an instance while it is still PROVISIONING',
  after: ['catalog'],
  isBesideFirst: true,
  buys: [
    { type: 'instance', offer: 'cheapest', what: 'the instance that is destroyed before it has booted' },
  ],
  async run(session) {
    const instance = await buy(session);
    if (instance === undefined) return;
    const call = { method: 'DELETE', path: instancePath(instance) } as const;
    await session.client.sendTogether([
      { step: 'early-delete/delete', call },
      { step: 'early-delete/delete', call },
    ]);
    await confirmGone(session, 'early-delete', instance);
  },
};

/** Capacity may be sold between the read and the create, as in `create`. */
async function buy(session: Session): Promise<Instance | undefined> {
  const choices = await placementsNow(session, 'early-delete/availability');
  let why = 'no offer that it may buy is available';
  for (const placement of choices.slice(0, MOST_TRIED)) {
    const { exchange, instance } = await buyInstance(session, { placement, step: 'early-delete/create' });
    if (instance !== undefined) return instance;
    why = `its create was answered ${exchange.answer?.status ?? exchange.failure?.message}`;
    if (exchange.answer?.status !== 409) break;
  }
  session.skipForLackOfUnits('early-delete', why);
  return undefined;
}
