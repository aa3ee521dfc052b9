import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { collectLog } from '../../../test/support/doubles/log.ts';
import { anOrder } from '../../../test/support/rows/orchestrator-rows.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import type { PlatformDriver } from '../../orchestrator/model/platform-driver.ts';
import { exec } from './driver.ts';
import { infoAnswer, setting } from './program.fixture.ts';
import type { Request } from './protocol/messages.ts';
import { sendJson, startWebhook } from './protocol-server.fixture.ts';

const TOKEN = 'a-token-of-the-driver-0123456789';

interface Pair extends AsyncDisposable {
  driver: PlatformDriver;
  clock: VirtualClock;
  said(): string;
  requests: { headers: Record<string, unknown>; body: Request }[];
}

/** A driver over HTTP that greets correctly and then answers with `reply`. */
async function pairWith(
  reply: (response: ServerResponse, request: Request) => void,
  env: Record<string, string> = {},
): Promise<Pair> {
  const clock = new VirtualClock();
  const { log, lines } = collectLog();
  const webhook = await startWebhook((request, response) => {
    if (request.method === 'info') sendJson(response, { ...infoAnswer(), id: request.id });
    else reply(response, request);
  });
  const options = exec.configSchema.parse({ driver: 'exec', url: webhook.url });
  const driver = await exec.open(options, setting({ clock, log, env }));
  return {
    driver,
    clock,
    requests: webhook.requests,
    said: () => JSON.stringify(lines),
    async [Symbol.asyncDispose]() {
      await driver.close();
      await webhook[Symbol.asyncDispose]();
    },
  };
}

const json = { 'Content-Type': 'application/json' };

it.each<[string, (response: ServerResponse, request: Request) => void, string]>([
  [
    'half a body',
    (response) => {
      response.writeHead(200, { ...json, 'Content-Length': '1000' });
      response.write('{"id":"2","resu', () => response.destroy());
    },
    'broke off its answer to destroy',
  ],
  ['a connection that ends', (response) => response.destroy(), 'broke off its answer to destroy'],
  [
    'a 500',
    (response) => response.writeHead(500, json).end('{"oops":1}'),
    'answers destroy with status 500: "{\\"oops\\":1}"',
  ],
  [
    'a redirect',
    (response) => response.writeHead(307, { Location: 'http://127.0.0.1:1/elsewhere' }).end(),
    'answers 307, a redirect, which Berth does not follow: set url to the final address',
  ],
  [
    'another content type',
    (response, { id }) =>
      response
        .writeHead(200, { 'Content-Type': 'text/html' })
        .end(JSON.stringify({ id, result: { outcome: 'done', value: null } })),
    'answers destroy with "text/html" instead of application/json',
  ],
  [
    'no JSON',
    (response) => response.writeHead(200, json).end('<html>'),
    'gave an invalid answer to destroy: expected {"id": "2"',
  ],
  [
    'the answer to another request',
    (response) => sendJson(response, { id: '1', result: { outcome: 'done', value: null } }),
    'gave an invalid answer to destroy',
  ],
  [
    'an answer that is nested too deeply',
    (response, { id }) =>
      response
        .writeHead(200, json)
        .end(
          `{"id":"${id}","result":{"outcome":"done","value":null,"more":${'['.repeat(201)}${']'.repeat(201)}}}`,
        ),
    'gave an invalid answer to destroy: expected {"id": "2"',
  ],
  ['an error', (response, { id }) => sendJson(response, { id, error: 'no disk' }), 'an error for destroy'],
])('proves nothing by %s', async (_what, reply, sentence) => {
  await using pair = await pairWith(reply);
  await expect(pair.driver.destroy('a', null, anOrder)).rejects.toThrow(sentence);
  expect(await pair.driver.get('a')).toEqual({ answer: 'unknown', reason: expect.any(String) });
  expect(await pair.driver.list()).toMatchObject({ answer: 'unknown' });
});

it('applies the same time limit to a reply that arrives in small pieces', async () => {
  await using pair = await pairWith((response) => {
    response.writeHead(200, json);
    response.write('{');
    const timer = setInterval(() => response.write(' '), 5);
    response.once('close', () => clearInterval(timer));
  });
  const asked = pair.driver.destroy('a', null, anOrder);
  asked.catch(() => undefined);
  await expect.poll(() => pair.requests.length).toBe(2);
  await pair.clock.advance(7_000);
  await expect(asked).rejects.toThrow('did not answer destroy within 7 s');
});

it('sends the token as a bearer token, and never logs it', async () => {
  await using pair = await pairWith((response) => response.writeHead(500, json).end(`you sent ${TOKEN}`), {
    BERTH_DRIVER_TOKEN: TOKEN,
  });
  await expect(pair.driver.destroy('a', null, anOrder)).rejects.toThrow('you sent [redacted]');
  expect(pair.requests.map(({ headers }) => headers['authorization'])).toEqual([
    `Bearer ${TOKEN}`,
    `Bearer ${TOKEN}`,
  ]);
  expect(pair.said()).not.toContain(TOKEN);
});

it('redacts the token in failures of the driver', async () => {
  const failed = { outcome: 'failed', code: 'invalid', side_effect: 'none', detail: `no such key: ${TOKEN}` };
  await using pair = await pairWith((response, { id }) => sendJson(response, { id, result: failed }), {
    BERTH_DRIVER_TOKEN: TOKEN,
  });
  expect(await pair.driver.destroy('a', null, anOrder)).toMatchObject({ detail: 'no such key: [redacted]' });
});

it.each([
  [401, 'auth', 'no token was sent'],
  [403, 'auth', 'no token was sent'],
  [429, 'transient', 'too many requests'],
])('treats a %d as a request that was not started', async (status, code, detail) => {
  await using pair = await pairWith((response) => response.writeHead(status, json).end('{}'));
  expect(await pair.driver.destroy('a', null, anOrder)).toEqual({
    outcome: 'failed',
    code,
    sideEffect: 'none',
    detail: expect.stringContaining(detail),
  });
  expect(await pair.driver.get('a')).toMatchObject({ answer: 'unknown' });
});

it('has started nothing if the server is down', async () => {
  const clock = new VirtualClock();
  const { log, lines } = collectLog();
  const webhook = await startWebhook((request, response) =>
    sendJson(response, { ...infoAnswer(), id: request.id }),
  );
  const options = exec.configSchema.parse({ driver: 'exec', url: webhook.url });
  const driver = await exec.open(options, setting({ clock, log }));
  await webhook[Symbol.asyncDispose]();
  const destroy = () => driver.destroy('a', null, anOrder).catch(() => undefined);
  await expect.poll(destroy).toMatchObject({
    code: 'transient',
    sideEffect: 'none',
    detail: expect.stringContaining('cannot be reached at http://127.0.0.1:'),
  });
  expect(await driver.get('a')).toMatchObject({ answer: 'unknown' });
  expect(lines.filter(({ level }) => level === 'error')).toHaveLength(1);
  await driver.close();
});

it('requests info again after a lost connection, because another program may answer', async () => {
  const clock = new VirtualClock();
  let protocol = 1;
  await using webhook = await startWebhook((request, response) => {
    if (request.method === 'info') sendJson(response, { ...infoAnswer({ protocol }), id: request.id });
    else if (protocol === 1) response.writeHead(502).end();
    else sendJson(response, { id: request.id, result: { outcome: 'done', value: null } });
  });
  const options = exec.configSchema.parse({ driver: 'exec', url: webhook.url });
  const driver = await exec.open(options, setting({ clock }));
  await expect(driver.destroy('a', null, anOrder)).rejects.toThrow('status 502');
  protocol = 8;
  expect(await driver.destroy('a', null, anOrder)).toMatchObject({
    code: 'transient',
    sideEffect: 'none',
    detail: expect.stringContaining('an invalid answer to info: protocol: '),
  });
  expect(webhook.requests.map(({ body }) => body.method)).toEqual(['info', 'destroy', 'info']);
  await driver.close();
});

it('waits at startup for a driver that does not listen yet, and then reports it', async () => {
  const options = exec.configSchema.parse({ driver: 'exec', url: 'http://127.0.0.1:1/' });
  const clock = new VirtualClock();
  const opening = exec.open(options, setting({ clock }));
  await expect(clock.advanceUntilSettled(opening, 100)).rejects.toThrow(
    'The driver at http://127.0.0.1:1/ cannot be used: the driver cannot be reached at http://127.0.0.1:1 (ECONNREFUSED).',
  );
  expect(clock.now() - new VirtualClock().now()).toBeGreaterThan(1_900);
});

it.each([
  [{ url: 'http://driver.example.com/' }, 'plain http is allowed for this machine only'],
  [{ url: 'http://127.evil.example/' }, 'plain http is allowed for this machine only'],
  [{ url: 'https://user:secret@driver.example.com/' }, 'the token comes from the environment'],
  [{ url: 'http://127.0.0.1:1/', command: ['x'] }, 'expected either command or url'],
  [{}, 'expected either command or url'],
])('refuses the options %j', (options, problem) => {
  const { error } = exec.configSchema.safeParse({ driver: 'exec', ...options });
  expect(error?.issues.map(({ message }) => message).join()).toContain(problem);
});

it.each([
  [
    { command: ['/nowhere/driver'] },
    {},
    'The driver /nowhere/driver cannot be run: the file does not exist.',
  ],
  [{ command: [import.meta.filename] }, {}, 'it is not executable (chmod +x)'],
  [{ command: ['no-such-driver'] }, {}, 'is not found in PATH'],
  [
    { command: ['sh'], environment: ['MY_TOKEN'] },
    {},
    'platform.environment names MY_TOKEN, which is not set',
  ],
  [
    { url: 'http://127.0.0.1:1/' },
    { BERTH_DRIVER_TOKEN: 'short' },
    'BERTH_DRIVER_TOKEN must be 16 to 512 characters',
  ],
])('is refused before the start: %j', (options, env, problem) => {
  const given = exec.configSchema.parse({ driver: 'exec', ...options });
  expect(() => exec.check(given, setting({ env: { PATH: '/usr/bin:/bin', ...env } }))).toThrow(problem);
});
