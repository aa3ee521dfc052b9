import { randomUUID } from 'node:crypto';
import type { Exchange } from '../transcript/records.ts';
import { isSuccess, statusOf } from '../wire/json.ts';
import type { Scenario } from './scenario.ts';
import type { Session } from './session.ts';

const ABSENT = [404, 405, 501];
const REFUSED = [400, 401, 403, 422];

/**
 * Asks for an access token and uses it. A target that has tokens and refuses the API key itself gets the token from then
 * on. Without it nothing else could be asked for, so this comes first.
 */
export const token: Scenario = {
  id: 'token',
  level: 'read-only',
  title: 'looks for the token endpoint',
  after: [],
  buys: [],
  async run(session) {
    const { wire, signal } = session;
    const lacking = whatLacks(await session.send('token/probe', wire.tokenCall(session.apiKey)));
    if (lacking !== undefined) {
      const steps = ['token/good', 'token/wrong-key', 'token/use', 'token/static-key'];
      return session.skip(steps, lacking.reason, lacking.capability);
    }
    const good = await wire.requestAccessToken('token/good', signal);
    await session.send('token/wrong-key', wire.tokenCall(`berth-conf-never-issued-${randomUUID()}`));
    if (wire.hasAccessToken) await use(session);
    else
      session.skip(
        ['token/use', 'token/static-key'],
        `POST /auth/token gave no token: it answered ${shown(good)}`,
      );
  },
};

async function use(session: Session): Promise<void> {
  const read = { method: 'GET', path: '/configurations' } as const;
  const withToken = await session.send('token/use', { ...read, credential: 'access token' });
  const withKey = await session.send('token/static-key', { ...read, credential: 'api key' });
  if (isSuccess(withToken) && isRefusal(withKey)) session.wire.preferAccessToken();
}

function isRefusal(exchange: Exchange): boolean {
  return [401, 403].includes(statusOf(exchange) ?? 0);
}

/** What the target does without, by its answer to an API key. */
function whatLacks(probe: Exchange): { capability: string; reason: string } | undefined {
  const status = statusOf(probe) ?? 0;
  const reason = `POST /auth/token with {"api_key": …} answered ${status}`;
  if (ABSENT.includes(status)) return { capability: 'token endpoint', reason };
  if (!REFUSED.includes(status)) return undefined;
  return {
    capability: 'a token for an API key',
    reason: `${reason}: it is not there, or takes a user name and a password, which the run does not have`,
  };
}

function shown({ answer, failure }: Exchange): string {
  return answer === undefined ? `nothing (${failure?.message})` : String(answer.status);
}
