import { instancePath } from '../../contract/paths.ts';
import { type TokenRequest, tokenRequests } from '../../http/sign-in.ts';
import { isSuccess, statusOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { inDrawnOrder } from '../drawn-order.ts';
import type { Scenario } from '../scenario.ts';
import type { Session } from '../session.ts';

const ABSENT = [404, 405, 501];
const REFUSED = [400, 401, 403, 422];

/**
 * Requests an access token with the API key or the login, and uses it. Runs first: if the target refuses the API key
 * itself, or the run has none, all later requests carry the token.
 */
export const token: Scenario = {
  id: 'token',
  level: 'read-only',
  title: 'looks for the token endpoint',
  after: [],
  buys: [],
  async run(session) {
    const request = await chooseRequest(session);
    if (request === undefined) return;
    const { client, signal } = session;
    const good = await client.requestAccessToken('token/good', request, signal);
    await askWrongly(session);
    await logIn(session);
    if (client.hasAccessToken) await use(session);
    else
      session.skip(
        ['token/use', 'token/static-key'],
        `POST /auth/token gave no token: it answered ${shown(good)}`,
      );
  },
};

/** The first token request that the target accepts. Undefined if there is none; the steps are then skipped. */
async function chooseRequest(session: Session): Promise<TokenRequest | undefined> {
  let lacking: ReturnType<typeof missingCapability>;
  for (const request of tokenRequests(session.signIn)) {
    const answer = missingCapability(
      request,
      await session.send('token/probe', session.client.tokenCall(request)),
    );
    if (answer === undefined) return request;
    lacking ??= answer;
  }
  const steps = ['good', 'wrong-key', 'wrong-login', 'empty', 'login', 'use', 'static-key'];
  session.skip(
    steps.map((step) => `token/${step}`),
    lacking?.reason ?? 'the run has neither an API key nor a login',
    lacking?.capability,
  );
  return undefined;
}

/** The capability that the target does not have, by its answer to a token request. */
function missingCapability(
  request: TokenRequest,
  probe: Exchange,
): { capability: string; reason: string } | undefined {
  const status = statusOf(probe) ?? 0;
  const isKey = request.api_key !== undefined;
  const reason = `POST /auth/token with ${isKey ? '{"api_key": …}' : '{"username": …, "password": …}'} answered ${status}`;
  if (ABSENT.includes(status)) return { capability: 'token endpoint', reason };
  if (!REFUSED.includes(status)) return undefined;
  if (!isKey) return { capability: 'a token for a login', reason };
  return {
    capability: 'a token for an API key',
    reason: `${reason}: it is not there, or takes a user name and a password (BERTH_USERNAME and BERTH_PASSWORD)`,
  };
}

async function askWrongly(session: Session): Promise<void> {
  const { client, draws } = session;
  const stranger = `berth-conf-never-issued-${draws.uuid('token/stranger')}`;
  const calls = [
    { step: 'token/wrong-key', ...client.tokenCall({ api_key: stranger }) },
    { step: 'token/wrong-login', ...client.tokenCall({ username: stranger, password: stranger }) },
    { step: 'token/empty', ...client.tokenCall({}) },
  ];
  for (const { step, ...call } of inDrawnOrder(draws, 'token/wrong', calls)) await session.send(step, call);
}

async function logIn(session: Session): Promise<void> {
  const { login } = session.signIn;
  if (login !== undefined)
    return void (await session.send('token/login', session.client.tokenCall({ ...login })));
  session.skip(
    ['token/login'],
    'the run was given none (BERTH_USERNAME and BERTH_PASSWORD)',
    'a user name and a password',
  );
}

async function use(session: Session): Promise<void> {
  const { client, signIn } = session;
  const read = { method: 'GET', path: '/configurations' } as const;
  const withToken = await session.send('token/use', { ...read, credential: 'access token' });
  for (const path of [
    '/availability',
    '/instances',
    instancePath({ id: session.draws.uuid('token/elsewhere') }),
  ])
    await session.send('token/use/elsewhere', { method: 'GET', path, credential: 'access token' });
  if (signIn.apiKey === undefined) return;
  const withKey = await session.send('token/static-key', { ...read, credential: 'api key' });
  if (isSuccess(withToken) && isRefusal(withKey)) client.preferAccessToken();
}

function isRefusal(exchange: Exchange): boolean {
  return [401, 403].includes(statusOf(exchange) ?? 0);
}

function shown({ answer, failure }: Exchange): string {
  return answer === undefined ? `nothing (${failure?.message})` : String(answer.status);
}
