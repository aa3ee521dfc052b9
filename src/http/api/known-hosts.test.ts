import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { Hono } from 'hono';
import { expect, it } from 'vitest';
import { silentLog } from '../../../test/support/doubles/log.ts';
import { startServer } from '../../../test/support/http/wire.ts';
import { adminListener } from '../../compose/serve/serve.ts';
import { loadConfig } from '../../config/load.ts';
import { adminApp } from './operations.ts';

const logged: object[] = [];
const app = adminApp(
  async () => undefined,
  { render: async () => ({ contentType: 'text/plain', text: 'up 1' }) },
  {
    apps: { '/operator': new Hono().all('*', (context) => context.text('in')) },
    hosts: ['192.0.2.1', 'berth.Example'],
    log: { info: (fields) => void logged.push(fields) },
    trustedProxies: 1,
  },
);

it.each([
  'localhost:9080',
  'LOCALHOST',
  'localhost.',
  '127.0.0.1',
  '10.1.2.3:9080',
  '[::1]:9080',
  '[fd00::7]',
  'BERTH.example:9080',
  'berth.example.',
])('answers operators under the name %s', async (host) => {
  for (const path of ['/operator', '/operator/v1/status'])
    expect((await app.request(`http://${host}${path}`)).status).toBe(200);
});

it.each([
  'evil.example',
  'localhost.evil.example',
  '127.0.0.1.nip.io',
  'xlocalhost',
  'sub.berth.example',
  'berth',
])('refuses operators under the name %s, and names the key to set', async (host) => {
  for (const path of ['/operator', '/operator/v1/status', '/operator/none']) {
    const reply = await app.request(`http://${host}:9080${path}`);
    expect([reply.status, await reply.json()]).toEqual([
      421,
      {
        error: {
          code: 'misdirected_request',
          message: `This listener does not serve the host name ${host}. It serves IP addresses and: localhost, berth.example. To add a name, set server.admin.hosts.`,
        },
      },
    ]);
  }
});

it.each(['/metrics', '/healthz', '/readyz'])('answers %s under any name', async (path) => {
  expect((await app.request(`http://berth.monitoring.svc:9080${path}`)).status).toBe(200);
});

const { config } = loadConfig({ flags: {}, env: {} });

it.each([
  ['/readyz HTTP/1.0', '', 200],
  ['/metrics HTTP/1.0', '', 200],
  ['/operator/v1/status HTTP/1.0', '', 400],
  ['/operator/v1/status HTTP/1.0', 'Host: localhost\r\n', 200],
  ['/operator/v1/status HTTP/1.0', 'Host: evil.example\r\n', 421],
  ['/readyz HTTP/1.0', 'Host:\r\n', 400],
  ['/readyz HTTP/1.0', 'Host: x\r\nHost: y\r\n', 400],
  ['/readyz HTTP/1.1', '', 400],
])('answers a health check without Host: GET %s %j %i', async (request, host, status) => {
  const listener = adminListener(app, { config, log: silentLog, nextId: () => 'id' });
  await using server = await startServer({ listener });
  const socket = connect(server.port, '127.0.0.1');
  socket.end(`GET ${request}\r\n${host}Connection: close\r\n\r\n`);
  const reply = await text(socket);
  expect(reply).toMatch(`HTTP/1.1 ${status} `);
  expect(reply.includes('expected one valid Host header')).toBe(status === 400);
});

it('logs a refused name with the address of the client, also behind a trusted proxy', async () => {
  logged.length = 0;
  const headers = { 'X-Forwarded-For': '198.51.100.9' };
  await app.request('http://evil.example/operator/v1/cordons', { method: 'POST', headers });
  await app.request('http://localhost/operator/v1/cordons', { method: 'POST', headers });
  expect(logged).toEqual([
    {
      method: 'POST',
      path: '/operator/v1/cordons',
      status: 421,
      address: '198.51.100.9',
      host: 'evil.example',
    },
  ]);
});
