import { instancePath } from '../../contract/paths.ts';
import { statusOf, successOf } from '../../transcript/exchange.ts';
import { requirePrimary, type Scenario } from '../scenario.ts';
import { skipTokensOnly } from './second-key.ts';

/** Asks for the instance with the key of another account, which must neither see nor end it. */
export const otherAccount: Scenario = {
  id: 'other-account',
  level: 'lifecycle',
  title: 'uses the key of another account',
  after: ['create'],
  buys: [],
  async run(session) {
    if (session.settings.hasOtherAccountKey !== true)
      return session.skip(
        ['other-account'],
        'no key of another account was given: put one into BERTH_OTHER_ACCOUNT_KEY, or pass --other-account-key-file',
        'a key of another account',
      );
    if (session.client.usualBearer !== session.signIn.apiKey) return skipTokensOnly(session, 'other-account');
    const instance = requirePrimary(session, 'other-account');
    if (instance === undefined) return;
    const path = instancePath(instance);
    const credential = 'other account key';
    const offers = { method: 'GET', path: '/configurations', credential } as const;
    const known = await session.send('other-account/configurations', offers);
    if ([401, 403].includes(statusOf(known) ?? 0))
      return session.skip(
        ['other-account/read'],
        `GET /configurations with that key was answered ${statusOf(known)}`,
      );
    await session.send('other-account/read', { method: 'GET', path, credential });
    await session.send('other-account/list', { method: 'GET', path: '/instances', credential });
    await session.send('other-account/stop', {
      method: 'POST',
      path: instancePath(instance, '/stop'),
      credential,
    });
    await session.send('other-account/delete', { method: 'DELETE', path, credential });
    const after = await session.get('other-account/after', path);
    if (successOf(after)?.['status'] === 'ONLINE' || session.online === undefined) return;
    session.online = undefined;
    session.whyNotOnline = 'the key of another account stopped or destroyed the instance';
  },
};
