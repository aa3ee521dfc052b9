import { expect, it, onTestFinished } from 'vitest';
import { VirtualClock } from '../../test/support/time/virtual-clock.ts';
import {
  answerJson,
  instanceAnswer,
  type Received,
  startAnsweringServer,
} from './answering-server.fixture.ts';
import { createClient } from './create-client.ts';
import type { OrchestratorClient } from './orchestrator-client.ts';

interface TokenServer {
  /** The valid tokens. */
  good: Set<string>;
  exchanges: Received[];
  /** Status that the next exchange answers instead of a token. */
  refusal: number | null;
}

async function startTokenServer() {
  const state: TokenServer = { good: new Set(), exchanges: [], refusal: null };
  const error = { error: { code: 'unauthorized', message: 'No.' } };
  const server = await startAnsweringServer((request, response) => {
    if (request.url === '/v1/auth/token') {
      state.exchanges.push(request);
      if (state.refusal !== null) return answerJson(response, state.refusal, error);
      const token = `token-${state.exchanges.length}`;
      state.good.add(token);
      return answerJson(response, 200, { access_token: token, expires_in: 100 });
    }
    const token = request.headers.authorization?.replace('Bearer ', '') ?? '';
    return state.good.has(token)
      ? answerJson(response, 200, instanceAnswer)
      : answerJson(response, 401, error);
  });
  const clock = new VirtualClock();
  const client = createClient({
    baseUrl: server.baseUrl,
    allowPrivate: true,
    timeoutMs: 60_000,
    clock,
    credential: { exchange: { username: 'berth', password: 'pass-word' } },
  });
  onTestFinished(() => client.close());
  return { state, server, clock, client, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

const read = (client: OrchestratorClient) => client.getInstance('i-1', 'eu-frankfurt');

it('exchanges its credential once for calls at the same time', async () => {
  await using setup = await startTokenServer();
  await Promise.all([read(setup.client), read(setup.client), read(setup.client)]);
  expect(setup.state.exchanges).toHaveLength(1);
  expect(setup.state.exchanges[0]).toMatchObject({
    method: 'POST',
    body: '{"username":"berth","password":"pass-word"}',
  });
  expect(setup.state.exchanges[0]?.headers.authorization).toBeUndefined();
});

it('renews a token before it expires', async () => {
  await using setup = await startTokenServer();
  await read(setup.client);
  await setup.clock.advance(79_000);
  await read(setup.client);
  expect(setup.state.exchanges).toHaveLength(1);
  await setup.clock.advance(2000);
  await read(setup.client);
  await expect.poll(() => setup.state.exchanges.length).toBe(2);
});

it('uses a token that is still valid while a renewal fails', async () => {
  await using setup = await startTokenServer();
  await read(setup.client);
  setup.state.refusal = 503;
  await setup.clock.advance(90_000);
  expect((await read(setup.client)).id).toBe('i-1');
  await expect.poll(() => setup.state.exchanges.length).toBe(2);
});

it('retries once with a new token if one was refused', async () => {
  await using setup = await startTokenServer();
  await read(setup.client);
  setup.state.good.clear();
  expect((await setup.client.stopInstance('i-1', 'eu-frankfurt')).id).toBe('i-1');
  expect(setup.state.exchanges).toHaveLength(2);
  expect(setup.server.received.filter(({ url }) => url.includes('stop'))).toHaveLength(2);
});

it('gives up if the new token is refused too', async () => {
  await using setup = await startTokenServer();
  setup.state.good.add = () => setup.state.good;
  await expect(setup.client.stopInstance('i-1', 'eu-frankfurt')).rejects.toMatchObject({
    problem: 'unauthorized',
    status: 401,
    mayHaveHappened: false,
  });
  expect(setup.state.exchanges).toHaveLength(2);
});

it.each([401, 503])('knows that nothing was changed if the exchange fails with %i', async (status) => {
  await using setup = await startTokenServer();
  setup.state.refusal = status;
  await expect(setup.client.stopInstance('i-1', 'eu-frankfurt')).rejects.toMatchObject({
    status,
    mayHaveHappened: false,
    message: `POST /auth/token: ${status}, No.`,
  });
  setup.state.refusal = null;
  expect((await read(setup.client)).id).toBe('i-1');
});

it('knows that nothing was changed if the exchange takes too long', async () => {
  const clock = new VirtualClock();
  await using server = await startAnsweringServer(() => void clock.advance(30));
  const client = createClient({
    baseUrl: server.baseUrl,
    allowPrivate: true,
    timeoutMs: 50,
    clock,
    credential: { exchange: { api_key: 'a-long-lived-key' } },
  });
  onTestFinished(() => client.close());
  await expect(client.stopInstance('i-1', 'eu-frankfurt', { timeoutMs: 30 })).rejects.toMatchObject({
    problem: 'timeout',
    mayHaveHappened: false,
  });
  expect(server.received.map(({ url }) => url)).toEqual(['/v1/auth/token']);
});
