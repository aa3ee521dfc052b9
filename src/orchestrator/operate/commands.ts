import { z } from 'zod';
import { defineAction } from '../../operator-kit/operation.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import * as accounts from '../accounts/accounts.ts';
import type { Store } from '../model/store.ts';

interface Deps {
  store: Store;
  clock: Clock;
  random: Random;
}

export const setPassword = defineAction({
  name: 'setPassword',
  tag: 'Accounts',
  path: '/accounts/{account}/password',
  summary: 'Set the password of an account',
  description: 'For `POST /auth/token`. Tokens obtained with the old password end.',
  input: { account: z.string().meta({ description: 'Its name.' }), password: z.string() },
  example: { password: 'a long password' },
  reply: ['The account.', z.object({ name: z.string() })],
  audit: ({ account }) => ({ action: 'account.set_password', subject: account }),
  run: async (deps: Deps, { account: name, password }) => {
    await accounts.setPassword(deps, name, password);
    return { name };
  },
});

/** What an operator of production does on the command line only. The operator API of a sandbox has it too. */
export const commands = [setPassword] as const;
