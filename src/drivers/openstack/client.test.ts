import { describe, expect, it } from 'vitest';
import { NotReached } from '../../ports/errors.ts';
import type { Answer, Sent } from '../kit/http-transport.ts';
import { CloudClient } from './client.ts';
import { CloudRefusal, toFailure } from './errors.ts';

const cloud = {
  ...{
    authUrl: 'https://keystone/v3',
    auth: {},
    project: undefined as string | undefined,
    region: 'R',
    interface: 'public',
    ca: undefined,
    verify: true,
  },
  ...{ file: 'clouds.yaml', isReadableByOthers: false },
};
const endpoints = [{ interface: 'public', region_id: 'R', url: 'https://nova/v2.1' }];
const token = {
  expires_at: '2100-01-01T00:00:00Z',
  project: { id: 'p', name: 'p' },
  catalog: [{ type: 'compute', endpoints }],
};

function clientOver(answerOf: (sent: Sent) => Partial<Answer> | Error, now = () => 0) {
  const sent: Sent[] = [];
  const transport = {
    async send(request: Sent): Promise<Answer> {
      sent.push(request);
      if (request.url.endsWith('/auth/tokens'))
        return {
          status: 201,
          headers: { 'x-subject-token': `t${sent.length}` },
          text: JSON.stringify({ token }),
        };
      const answer = answerOf(request);
      if (answer instanceof Error) throw answer;
      return { status: 200, headers: {}, text: '{}', ...answer };
    },
    close: async () => undefined,
  };
  return { client: new CloudClient({ cloud, transport, now }), sent };
}
const refusal = (error: unknown): CloudRefusal => error as CloudRefusal;

describe('requests to a cloud', () => {
  it('are not sent to a service for as long as it asked for a pause', async () => {
    let nowMs = 0;
    const { client, sent } = clientOver(
      () => ({ status: 429, headers: { 'retry-after': '7' }, text: 'slow down' }),
      () => nowMs,
    );
    const ask = () => client.get('compute', '/servers').catch(refusal);
    expect(await ask()).toMatchObject({ status: 429, retryAfterMs: 7_000 });
    nowMs = 5_000;
    const count = sent.length;
    expect(await ask()).toMatchObject({
      status: 429,
      retryAfterMs: 2_000,
      message: 'compute asked for a pause of 2 s',
    });
    expect(sent.length).toBe(count);
    nowMs = 7_000;
    await ask();
    expect(sent.length).toBe(count + 1);
  });

  it('share one request for a token, and name the microversion', async () => {
    const { client, sent } = clientOver(() => ({}));
    await Promise.all([client.get('compute', '/a'), client.get('compute', '/b')]);
    expect(sent.map(({ url }) => url)).toEqual([
      'https://keystone/v3/auth/tokens',
      'https://nova/v2.1/a',
      'https://nova/v2.1/b',
    ]);
    expect(sent[1]?.headers).toMatchObject({ 'x-auth-token': 't1', 'OpenStack-API-Version': 'compute 2.79' });
  });

  it('that find the token refused or expired at once share one request for the next', async () => {
    let nowMs = 0;
    let refused = '';
    const { client, sent } = clientOver(
      ({ headers }) => (headers['x-auth-token'] === refused ? { status: 401, text: '{}' } : {}),
      () => nowMs,
    );
    const three = () => Promise.all(['/a', '/b', '/c'].map((path) => client.get('compute', path)));
    const tokens = () => sent.filter(({ url }) => url.endsWith('/auth/tokens')).length;
    await three();
    refused = 't1';
    await three();
    expect(tokens()).toBe(2);
    nowMs = Date.parse(token.expires_at);
    await three();
    expect(tokens()).toBe(3);
  });

  it('are sent once more with a new token after a 401, and then refused', async () => {
    const { client, sent } = clientOver(() => ({ status: 401, text: '{"error": {"message": "no"}}' }));
    const error = await client.send('POST', 'compute', '/servers', { body: {} }).catch(refusal);
    expect(toFailure(error)).toMatchObject({ code: 'auth', sideEffect: 'none' });
    expect(sent.filter(({ method, url }) => method === 'POST' && url.includes('nova'))).toHaveLength(2);
  });

  it.each([
    [429, { 'retry-after': '7' }, 'busy', { code: 'transient', sideEffect: 'none', retryAfterMs: 7_000 }],
    [
      503,
      { 'retry-after': '3' },
      '<html>',
      { code: 'transient', sideEffect: 'possible', retryAfterMs: 3_000 },
    ],
    [
      403,
      {},
      '{"forbidden": {"message": "Quota exceeded for cores"}}',
      { code: 'quota', sideEffect: 'none' },
    ],
    [404, {}, '{"itemNotFound": {"message": "Instance x could not be found."}}', { code: 'gone' }],
    [
      409,
      {},
      '{"NeutronError": {"type": "PortInUse", "message": "Port p is still in use."}}',
      { code: 'conflict' },
    ],
    [
      500,
      {},
      '{"computeFault": {"message": "Unexpected API Error."}}',
      { code: 'internal', sideEffect: 'possible' },
    ],
  ])('that are answered %s fail as %o says', async (status, headers, text, expected) => {
    const { client } = clientOver(() => ({ status, headers, text }) as Partial<Answer>);
    const error = await client.send('POST', 'compute', '/servers', { body: {} }).catch(refusal);
    expect(toFailure(error)).toMatchObject({ outcome: 'failed', ...expected });
  });

  it('that a proxy answers with 404 prove nothing', async () => {
    const { client } = clientOver(() => ({ status: 404, text: '<html>not here</html>' }));
    const error = await client.get('compute', '/servers/x').catch((found: unknown) => found);
    expect(error).not.toBeInstanceOf(CloudRefusal);
    expect(String(error)).toContain('unexpected body');
  });

  it('whose connection is refused were not sent; whose answer is lost may have had an effect', async () => {
    const problem = (code: string) => Object.assign(new Error(code), { code });
    const { client } = clientOver(({ url }) =>
      problem(url.endsWith('/refused') ? 'ECONNREFUSED' : 'ECONNRESET'),
    );
    await expect(client.send('POST', 'compute', '/refused')).rejects.toThrow(NotReached);
    await expect(client.send('POST', 'compute', '/lost')).rejects.toThrow('the answer is lost');
    await expect(client.send('POST', 'compute', '/lost')).rejects.not.toThrow(NotReached);
  });

  it('follow the pages of a list to its end', async () => {
    const page = (url: string) => {
      const marker = new URL(url).searchParams.get('marker');
      const next =
        marker === 'b'
          ? []
          : [
              {
                rel: 'next',
                href: `https://nova/v2.1/servers?limit=1&marker=${marker === null ? 'a' : 'b'}`,
              },
            ];
      return { servers: [{ id: marker ?? 'first' }], servers_links: next };
    };
    const { client } = clientOver(({ url }) => ({ text: JSON.stringify(page(url)) }));
    const found = await client.list<{ id: string }>('compute', '/servers', 'servers');
    expect(found.map(({ id }) => id)).toEqual(['first', 'a', 'b']);
  });

  it('are not sent after the deadline of their call', async () => {
    const { client, sent } = clientOver(() => ({}));
    const call = { deadline: 0, fence: 1, signal: new AbortController().signal };
    await expect(client.send('POST', 'compute', '/servers', { call })).rejects.toThrow(NotReached);
    expect(sent).toEqual([]);
  });
});
