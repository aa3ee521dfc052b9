import { instancePath } from '../wire/paths.ts';
import { buyInstance, readPlacements } from './buy-instance.ts';
import { confirmGone } from './destroy-instance.ts';
import type { Scenario } from './scenario.ts';

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
    const [placement] = await readPlacements(session, 'early-delete/availability');
    if (placement === undefined)
      return session.skip(['early-delete'], 'no offer that it may buy is available');
    const { exchange, instance } = await buyInstance(session, { placement, step: 'early-delete/create' });
    if (instance === undefined)
      return session.skip(
        ['early-delete'],
        `its create was answered ${exchange.answer?.status ?? exchange.failure?.message}`,
      );
    const call = { method: 'DELETE', path: instancePath(instance) } as const;
    await session.wire.sendTogether([
      { step: 'early-delete/delete', call },
      { step: 'early-delete/delete', call },
    ]);
    await confirmGone(session, 'early-delete', instance);
  },
};
