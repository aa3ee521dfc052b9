import { instancePath } from '../../contract/paths.ts';
import { requirePrimary, type Scenario } from '../scenario.ts';
import type { Session } from '../session.ts';

/** Reads the instance with a second key of the same account, and again with the first. */
export const secondKey: Scenario = {
  id: 'second-key',
  level: 'full',
  title: 'uses a second API key',
  after: ['online'],
  buys: [],
  async run(session) {
    if (session.client.usualBearer !== session.signIn.apiKey) return skipTokensOnly(session, 'second-key');
    if (!session.settings.hasSecondKey)
      return session.skip(
        ['second-key'],
        'no second API key was given: put one of the same account into BERTH_SECOND_API_KEY, or pass --second-api-key-file',
      );
    const instance = requirePrimary(session, 'second-key');
    if (instance === undefined) return;
    const path = instancePath(instance);
    const credential = 'second api key';
    for (let round = 0; round < 2; round++) {
      await session.send('second-key/read', { method: 'GET', path, credential });
      await session.get('second-key/read-with-first', path);
    }
    await session.send('second-key/list', { method: 'GET', path: '/instances', credential });
  },
};

/** Skips a scenario that needs a further key. */
export function skipTokensOnly(session: Session, scenario: string): void {
  session.skip(
    [scenario],
    'the target takes access tokens only, and no API key as it is',
    'API keys as bearer credentials',
  );
}
