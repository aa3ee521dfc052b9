import type { RequestListener } from 'node:http';
import { afterEach, expect, it, vi } from 'vitest';
import { startServer } from '../../test/support/http/wire.ts';
import { runMain } from '../../test/support/processes/run-main.ts';
import { createCertificates } from '../compose/sandbox/certificates.ts';
import { serverIn } from './health-command.ts';

const alive: RequestListener = ({ url }, response) =>
  void response.writeHead(url === '/healthz' ? 200 : 404).end();
const ill: RequestListener = (_request, response) => void response.writeHead(500).end();
const { valid } = createCertificates(['server.example'], Date.now());

afterEach(() => vi.unstubAllEnvs());

it.each([
  [
    'a flag',
    alive,
    {},
    (port: number) => ['serve', '--port', `${port}`],
    /^The server at http:.* is healthy/,
  ],
  ['a variable', alive, { BERTH_PORT: true }, () => [], /^The server at http:.* is healthy/],
  [
    'TLS',
    alive,
    { BERTH_PORT: true, tls: valid },
    () => ['serve', '--tls-cert', 'a.pem', '--tls-key', 'b.pem'],
    /^The server at https:.* is healthy/,
  ],
  [
    'a marketplace',
    alive,
    { BERTH_MARKETPLACE_PORT: true },
    () => ['marketplace', '--host', '0.0.0.0'],
    /^The server at http:\/\/localhost.* is healthy/,
  ],
  ['an error', ill, { BERTH_PORT: true }, () => ['serve'], /is not healthy: \/healthz answers 500\.$/m],
  ['no TLS', alive, { BERTH_PORT: true, tls: valid }, () => ['serve'], /is not healthy: /],
])('finds the server as the server finds its address: %s', async (_what, listener, set, words, sentence) => {
  const { tls, ...variables } = set as { tls?: typeof valid } & Record<string, true>;
  await using server = await startServer({ listener }, { tls });
  for (const name of Object.keys(variables)) vi.stubEnv(name, String(server.port));
  const { code, stdout, stderr } = await runMain(['health', ...words(server.port)]);
  expect(stdout + stderr).toMatch(sentence);
  expect(code).toBe(stdout === '' ? 1 : 0);
});

it.each([
  ['node --max-semi-space-size=8 dist/main.js serve --port 1', 'serve --port 1'],
  ['/sbin/docker-init -- node dist/main.js marketplace', 'marketplace'],
  ['/usr/local/bin/berth serve', 'serve'],
  ['/sbin/init serve', ''],
])('finds the server in a command line: %s', (line, found) => {
  expect(serverIn(line.split(' ')).join(' ')).toBe(found);
});
