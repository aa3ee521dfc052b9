import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import type { RouteEntry } from '../../config/alarms-schema.ts';
import { startSmtpServer } from '../../marketplace/mail/smtp.fixture.ts';
import type { AlarmMessage } from '../../operator-kit/alarms/message.ts';
import { createAlarmRoutes } from './alarm-routes.ts';

const message: AlarmMessage = {
  id: 'abc',
  route: 'on-call',
  server: 'one',
  title: 'Berth on one: 1 alarm (critical): platform_down east',
  text: 'CRITICAL platform_down east\n<it> & nothing answers',
  alarms: [],
};

/** A real HTTP server that records what it receives. */
async function startHook(status = 200, headers: Record<string, string> = {}) {
  const received: { path: string | undefined; body: unknown }[] = [];
  const server = createServer(async (request: IncomingMessage, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    received.push({ path: request.url, body: JSON.parse(Buffer.concat(chunks).toString()) });
    response.writeHead(status, headers).end('ok');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

function open(entry: Omit<RouteEntry, 'name' | 'severity'>, env: Record<string, string> = {}, mail?: object) {
  const routes = [{ name: 'on-call', severity: 'warning' as const, ...entry }];
  const [route] = createAlarmRoutes({ alarms: { routes }, mail: mail as never }, env, new VirtualClock());
  if (route === undefined) throw new Error('no route');
  onTestFinished(async () => void (await route.close()));
  return route;
}

it('a webhook receives the message as JSON, and its URL may be in a file with its token', async () => {
  const hook = await startHook();
  const folder = mkdtempSync(join(tmpdir(), 'berth-routes-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'url'), `${hook.url}/hook?token=secret\n`);
  const route = open(
    { webhook: { url_env: 'HOOK', allow_private: true } },
    { HOOK_FILE: join(folder, 'url') },
  );
  await route.send(message);
  expect(hook.received).toEqual([{ path: '/hook?token=secret', body: { version: 1, ...message } }]);
});

it('a Slack webhook receives text without markup', async () => {
  const hook = await startHook();
  await open({ slack: { url: hook.url, allow_private: true } }).send(message);
  expect(hook.received[0]?.body).toEqual({
    text: `${message.title}\nCRITICAL platform_down east\n&lt;it&gt; &amp; nothing answers`,
  });
});

it('refusals and redirects are failures, and no redirect is followed', async () => {
  const target = await startHook();
  for (const hook of [await startHook(500), await startHook(302, { location: target.url })])
    await expect(open({ webhook: { url: hook.url, allow_private: true } }).send(message)).rejects.toThrow(
      /it answered with status (500|302)/,
    );
  expect(target.received).toEqual([]);
});

it('a message is accepted by the status, whatever happens to the rest of the answer', async () => {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-length': '9' }).flushHeaders();
    setImmediate(() => response.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await open({ webhook: { url, allow_private: true } }).send(message);
});

it('private addresses are refused unless allowed, also if a name resolves to one', async () => {
  expect(() => open({ webhook: { url: 'http://hooks.example/x', allow_private: false } })).toThrow(
    /expected https/,
  );
  expect(() => open({ webhook: { url: 'https://10.0.0.1/x', allow_private: false } })).toThrow(/private/);
  const route = open({ webhook: { url: 'https://localhost:1/x?token=secret', allow_private: false } });
  const error = await route.send(message).then(
    () => '',
    (refused) => String(refused),
  );
  expect(error).toMatch(/localhost resolves to a private or reserved address/);
  expect(error).not.toContain('secret');
});

it('a missing secret is named with what it is for', () => {
  expect(() => open({ webhook: { url_env: 'HOOK', allow_private: false } })).toThrow(
    'The environment variable HOOK is not set, and should hold the URL of the route on-call',
  );
});

it('an e-mail goes to all recipients at once', async () => {
  const server = await startSmtpServer();
  const { port } = server;
  const mail = { host: '127.0.0.1', port, from: 'Berth <berth@example.com>' };
  await open({ email: { to: ['ann@example.com', 'bob@example.com'] } }, {}, mail).send(message);
  expect(server.received).toMatchObject([{ to: ['ann@example.com', 'bob@example.com'] }]);
  expect(server.received[0]?.raw).toContain(`Subject: ${message.title}`);
});
