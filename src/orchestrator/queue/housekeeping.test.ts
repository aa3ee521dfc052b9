import { expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/clocks/virtual-clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Authenticator } from '../accounts/authenticate.ts';
import type { Store } from '../model/store.ts';
import { Housekeeping } from './housekeeping.ts';

it('that is stopped in the middle of a round begins no other', async () => {
  const clock = new VirtualClock();
  const round = Promise.withResolvers<void>();
  const authenticator = { recordUses: () => round.promise } as unknown as Authenticator;
  const store = { transact: async () => undefined } as unknown as Store;
  const housekeeping = new Housekeeping({ store, clock, log: {} as Log, authenticator });
  housekeeping.start();
  await clock.advance(60_000);
  const stopped = housekeeping.stop();
  round.resolve();
  await stopped;
  await clock.advance(0);
  expect(clock.pendingTimers).toBe(0);
});
