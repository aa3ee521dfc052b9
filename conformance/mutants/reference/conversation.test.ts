import { describe, expect, it } from 'vitest';
import { createAutoClock } from './auto-clock.ts';
import { createReference } from './create-reference.ts';
import { setUp } from './reference.fixture.ts';

const everywhere = [
  ['GET', '/configurations'],
  ['PATCH', '/availability'],
  ['POST', '/instances'],
  ['GET', '/instances/i-00001'],
  ['GET', '/nothing-here'],
  ['GET', '/auth/token'],
] as const;

describe('the reference', () => {
  it.each(everywhere)(
    'answers %s %s with 401 before all else, unless a key is right',
    async (method, path) => {
      const { send, bearer } = setUp();
      const headers = [
        {},
        bearer('wrong'),
        { authorization: 'Basic cmVmOnJlZg==' },
        { authorization: 'Bearer ' },
      ];
      for (const wrong of headers)
        expect(await send(method, path, wrong, '{')).toMatchObject({
          status: 401,
          headers: { 'content-type': 'application/json' },
          body: { error: { code: 'unauthorized', message: expect.any(String) } },
        });
      for (const key of ['reference-key-one', 'reference-key-two'])
        expect((await send(method, path, bearer(key), '{')).status).not.toBe(401);
    },
  );

  it('has an envelope for unknown paths, wrong methods and bodies that are not JSON', async () => {
    const { call, send, bearer } = setUp();
    const error = { code: expect.any(String), message: expect.any(String) };
    expect(await call('GET', '/nothing')).toMatchObject({ status: 404, body: { error } });
    expect(await call('GET', '/instances/')).toMatchObject({ status: 404, body: { error } });
    expect(await call('GET', '/instances/i-unknown')).toMatchObject({ status: 404, body: { error } });
    expect(await call('POST', '/auth/token', { api_key: 'x' })).toMatchObject({
      status: 404,
      body: { error },
    });
    expect(await call('PUT', '/instances')).toMatchObject({ status: 405, body: { error } });
    for (const text of ['', '{', '[]', 'null'])
      expect(await send('POST', '/instances', bearer('reference-key-one'), text)).toMatchObject({
        status: 400,
        body: { error },
      });
  });

  it('takes the way there and back and some work for every answer, in virtual time', async () => {
    const clock = createAutoClock();
    const { transport } = createReference({ clock });
    const request = { method: 'GET', url: 'https://reference.test/v1/configurations', headers: {} };
    const limits = { timeoutMs: 1_000, maxBodyBytes: 1_000 };
    expect(await transport.roundTripMs(request.url, 1_000)).toBe(20);
    expect(await transport.send(request, limits)).toMatchObject({
      status: 401,
      firstByteMs: 25,
      totalMs: 25,
    });
    expect(clock.now()).toBe(25);
    expect(await transport.send(request, { ...limits, timeoutMs: 24 })).toMatchObject({
      failure: 'timeout',
      totalMs: 24,
    });
    expect(await transport.send(request, { ...limits, timeoutMs: 4 })).toMatchObject({
      failure: 'timeout',
      totalMs: 4,
    });
    expect(await transport.send(request, { ...limits, maxBodyBytes: 9 })).toMatchObject({
      failure: 'too_large',
    });
    expect(await transport.send({ ...request, url: 'https://other.test/v1' }, limits)).toMatchObject({
      failure: 'dns',
    });
    const interrupted = transport.send(request, { ...limits, signal: AbortSignal.abort() });
    expect(await interrupted).toMatchObject({ failure: 'interrupted' });
  });

  it('lets one rule be replaced, and the last word on an answer', async () => {
    const { call } = setUp({
      behave: (rules) => ({
        ...rules,
        answer: (request, answer) =>
          request.route === 'GET /instances' ? { ...answer, status: 418 } : answer,
      }),
    });
    expect(await call('GET', '/instances')).toMatchObject({ status: 418 });
    expect(await call('GET', '/configurations')).toMatchObject({ status: 200 });
  });
});

describe('POST /auth/token', () => {
  it('gives a bearer credential for an API key, until that expires', async () => {
    const { send, bearer, clock } = setUp({ token: 'api_key', staticKeys: false, tokenLifetimeS: 60 });
    const ask = (body: unknown) => send('POST', '/auth/token', {}, JSON.stringify(body));
    const issued = await ask({ api_key: 'reference-key-two' });
    expect(issued).toMatchObject({ status: 200, body: { token_type: 'Bearer', expires_in: 60 } });
    const token = bearer(String(issued.body['access_token']));
    expect(await send('GET', '/instances', token)).toMatchObject({ status: 200 });
    expect(await send('GET', '/instances', bearer('reference-key-two'))).toMatchObject({ status: 401 });
    await clock.sleep(60_000);
    expect(await send('GET', '/instances', token)).toMatchObject({ status: 401 });
    expect(await ask({ api_key: 'wrong' })).toMatchObject({ status: 401, body: { error: {} } });
    expect(await ask({ username: 'marketplace', password: 'correct horse' })).toMatchObject({ status: 401 });
  });

  it('takes exactly one kind of credential', async () => {
    const { send } = setUp({ token: 'password' });
    const statusOf = async (body: unknown) =>
      (await send('POST', '/auth/token', {}, JSON.stringify(body))).status;
    expect(await statusOf({ username: 'marketplace', password: 'correct horse' })).toBe(200);
    expect(await statusOf({ username: 'marketplace', password: 'wrong' })).toBe(401);
    expect(await statusOf({ username: 'marketplace' })).toBe(400);
    expect(await statusOf({ username: 'marketplace', password: 'correct horse', api_key: 'x' })).toBe(400);
    expect(await statusOf({ api_key: 7 })).toBe(400);
    expect(await statusOf({})).toBe(400);
  });
});
