import { SSH_KEY } from '../faults/bench.fixture.ts';
import type { SandboxAccount } from '../parts.ts';
import type { Sandbox } from '../sandbox.ts';

/** What a client does. Those of {@link goodHabits} obey the contract. */
interface Habits {
  pollEveryS: number;
  /** How long it waits after its login, so that its token expires during its work. */
  waitsForS: number;
  /** The query `region` of its requests. Undefined: none. */
  region: string | undefined;
  refreshesToken: 'ahead' | 'after 401';
  keepsRetryAfter: boolean;
  /** How many identical creates it sends, such as for two clicks. */
  clicks: number;
  repeatsCreate: 'with the same key' | 'anew' | 'never';
  /** How often it reads an instance again that was 404. */
  confirms404: number;
  /** Whether it also reads the list with each poll. */
  lists: boolean;
  ends: 'delete' | 'stop';
  /** Deletes that it sends for an instance that is gone. */
  deletesWhenGone: number;
  /** Which answer to a poll it takes for an end, besides 404. */
  endsAt: 'nothing else' | 'an error' | 'an unreadable answer' | 'a list without it';
}

const goodHabits: Habits = {
  pollEveryS: 20,
  waitsForS: 0,
  region: 'us-phoenix',
  refreshesToken: 'ahead',
  keepsRetryAfter: true,
  clicks: 1,
  repeatsCreate: 'with the same key',
  confirms404: 1,
  lists: false,
  ends: 'delete',
  deletesWhenGone: 1,
  endsAt: 'nothing else',
};

const ORDER = { configuration_id: 'd-cpu-4x16', region: 'us-phoenix', ssh_keys: [SSH_KEY], name: 'demo' };
const USES_FOR_S = 60;
const AHEAD_S = 60;
const BACKOFF_S = 8;
const MAX_TRIES = 5;

interface Answer {
  /** 0: none. */
  status: number;
  /** Undefined: unreadable. */
  body: { id?: string; status?: string; instances?: { id: string }[] } | undefined;
  waitS: number;
}

const isSuccess = ({ status, body }: Answer): boolean => status >= 200 && status < 300 && body !== undefined;

/** Buys an instance at provider-d, uses it, and ends it. */
export async function runClient(
  sandbox: Pick<Sandbox, 'fetch' | 'clock'>,
  account: SandboxAccount,
  habits: Partial<Habits> = {},
): Promise<void> {
  const { pollEveryS, waitsForS, confirms404, deletesWhenGone, endsAt, ends, ...how } = {
    ...goodHabits,
    ...habits,
  };
  const { baseUrl, apiKey } = account.providers['provider-d'] as { baseUrl: string; apiKey: string };
  const { clock } = sandbox;
  const wait = (seconds: number) => clock.advance(seconds * 1_000);
  let token = { value: '', until: 0 };

  async function send(method: string, path: string, body?: object, key?: string): Promise<Answer> {
    try {
      const response = await sandbox.fetch(`${baseUrl}${path}`, {
        method,
        signal: clock.timeout(10_000),
        headers: {
          authorization: `Bearer ${token.value}`,
          'content-type': 'application/json',
          ...(key !== undefined && { 'idempotency-key': key }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const waitS = how.keepsRetryAfter ? Number(response.headers.get('retry-after') ?? 0) : 0;
      const read = await response.json().catch(() => undefined);
      return { status: response.status, body: read as Answer['body'], waitS };
    } catch {
      return { status: 0, body: undefined, waitS: 0 };
    }
  }

  async function login(): Promise<void> {
    const { body } = await send('POST', '/auth/token', { api_key: apiKey });
    const { access_token: value = '', expires_in: seconds = 0 } = (body ?? {}) as Record<string, never>;
    token = { value, until: clock.now() + seconds * 1_000 };
  }

  async function ask(method: string, path: string, body?: object, key?: string): Promise<Answer> {
    const aheadMs = how.refreshesToken === 'ahead' ? AHEAD_S * 1_000 : Number.NEGATIVE_INFINITY;
    if (clock.now() + aheadMs >= token.until) await login();
    const answer = await send(method, path, body, key);
    if (answer.status !== 401) return answer;
    await login();
    return send(method, path, body, key);
  }

  /** Asks until it succeeds, is refused, or finds the resource gone. */
  async function insist(attempt: () => Promise<Answer>): Promise<Answer> {
    for (let tries = 1; ; tries++) {
      const answer = await attempt();
      const isRefused = [400, 403, 404].includes(answer.status);
      if (isSuccess(answer) || isRefused || tries === MAX_TRIES) return answer;
      await wait(how.keepsRetryAfter ? Math.max(answer.waitS, BACKOFF_S) : 1);
    }
  }

  const pathOf = (id: string, action = ''): string =>
    `/instances/${id}${action}${how.region === undefined ? '' : `?region=${how.region}`}`;

  async function order(click: number): Promise<string | undefined> {
    let tries = 0;
    const create = () => {
      const key = how.repeatsCreate === 'with the same key' ? `click-${click}` : `${click}-${tries++}`;
      return ask('POST', '/instances', ORDER, key);
    };
    const { body } = how.repeatsCreate === 'never' ? await create() : await insist(create);
    return body?.id;
  }

  /** How often in a row each instance was found gone. */
  const found = new Map<string, number>();
  /** Polls an instance once. `isGone`: the client takes it for ended. */
  async function poll(id: string): Promise<{ isGone: boolean; waitS: number }> {
    const { status, body, waitS } = await ask('GET', pathOf(id));
    const isListed = async () =>
      (await ask('GET', '/instances')).body?.instances?.some((one) => one.id === id) === true;
    if (how.lists) await isListed();
    if (endsAt === 'a list without it') return { isGone: !(await isListed()), waitS };
    const isError = endsAt === 'an error' && (status === 0 || status >= 500);
    const isUnreadable = endsAt === 'an unreadable answer' && status === 200 && body === undefined;
    const times = status === 404 ? (found.get(id) ?? 0) + 1 : 0;
    found.set(id, times);
    return { isGone: times > confirms404 || isError || isUnreadable, waitS };
  }

  /** Polls for some time, or until all are gone. Returns whether they are. */
  async function pollFor(seconds: number, ids: readonly string[]): Promise<boolean> {
    for (const until = clock.now() + seconds * 1_000; clock.now() < until; ) {
      const polls: Awaited<ReturnType<typeof poll>>[] = [];
      for (const id of ids) polls.push(await poll(id));
      if (polls.every(({ isGone }) => isGone)) return true;
      await wait(Math.max(pollEveryS, ...polls.map(({ waitS }) => waitS)));
    }
    return false;
  }

  /** The instances that a delete found gone. */
  const deleted = new Set<string>();
  /** Ends an instance, unless a delete has found it gone. */
  async function end(id: string): Promise<void> {
    if (ends === 'stop') await insist(() => ask('POST', pathOf(id, '/stop')));
    else if (!deleted.has(id) && (await insist(() => ask('DELETE', pathOf(id)))).status === 404)
      deleted.add(id);
  }

  await login();
  await wait(waitsForS);
  await insist(() => ask('GET', '/availability'));
  const ids: string[] = [];
  for (let click = 0; click < how.clicks; click++) {
    const id = await order(click);
    if (id !== undefined) ids.push(id);
  }
  let isGone = ids.length === 0 || (await pollFor(USES_FOR_S, ids));
  for (let tries = 0; !isGone && tries < MAX_TRIES; tries++) {
    for (const id of ids) await end(id);
    isGone = (await pollFor(USES_FOR_S, ids)) || ends === 'stop';
  }
  const sure = ends === 'delete' && endsAt === 'nothing else' ? deletesWhenGone : 0;
  for (const id of ids)
    for (let count = 0; count < sure && !deleted.has(id); count++) await ask('DELETE', pathOf(id));
}
