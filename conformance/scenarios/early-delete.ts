import { instancePath } from '../wire/paths.ts';
import { buyInstance, readPlacements } from './buy-instance.ts';
import { MOST_TRIED } from './create.ts';
import { confirmGone } from './destroy-instance.ts';
import type { Scenario } from './scenario.ts';
import type { Instance, Session } from './session.ts';

/** Destroys an instance that has only just been asked for, by two requests at the same moment. */
export const earlyDelete: Scenario = {
  id: 'early-delete',
  level: 'full',
  title: 'destroys an instance while it is still PROVISIONING',
  after: ['catalog'],
  buys: [
    { type: 'instance', offer: 'cheapest', what: 'the instance that is destroyed before it has booted' },
  ],
  async run(session) {
    const instance = await buy(session);
    if (instance === undefined) return;
    const call = { method: 'DELETE', path: instancePath(instance) } as const;
    await session.wire.sendTogether([
      { step: 'early-delete/delete', call },
      { step: 'early-delete/delete', call },
    ]);
    await confirmGone(session, 'early-delete', instance);
  },
};

/** Capacity may go between the read and the create, as in `create`. */
async function buy(session: Session): Promise<Instance | undefined> {
  const choices = await readPlacements(session, 'early-delete/availability');
  let why = 'no offer that it may buy is available';
  for (const placement of choices.slice(0, MOST_TRIED)) {
    const { exchange, instance } = await buyInstance(session, { placement, step: 'early-delete/create' });
    if (instance !== undefined) return instance;
    why = `its create was answered ${exchange.answer?.status ?? exchange.failure?.message}`;
    if (exchange.answer?.status !== 409) break;
  }
  session.skip(['early-delete'], why);
  return undefined;
}
