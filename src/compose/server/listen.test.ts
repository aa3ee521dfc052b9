import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, fetch as undiciFetch } from 'undici';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { adminLines } from '../../cli/serving.ts';
import { loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/schema.ts';
import { refuseWire } from '../../orchestrator/http/errors.ts';
import type { Log } from '../../ports/log.ts';
import { createCertificates } from '../sandbox/certificates.ts';
import { listenAdmin } from './listen.ts';

const warnings: { fields: object; message: string }[] = [];
const nothing = () => undefined;
const log: Log = {
  debug: nothing,
  info: nothing,
  error: nothing,
  warn: (fields, message) => warnings.push({ fields, message: String(message) }),
};
const notReady: RequestListener = (_request, response) => void response.writeHead(503).end();
const folder = mkdtempSync(join(tmpdir(), 'berth-listen-'));
afterAll(() => rmSync(folder, { recursive: true }));
const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0)) await step();
  warnings.length = 0;
});

/** Occupies a port, and returns it. */
async function takenPort(): Promise<number> {
  const other = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  undo.push(() => other.close());
  return (other.address() as { port: number }).port;
}

async function listen(
  server: { port?: number; admin?: Partial<Config['server']['admin']> },
  defaultPort: number,
): ReturnType<typeof listenAdmin> {
  const { config } = loadConfig({ flags: {}, env: {} });
  const settings = {
    ...config.server,
    ...server,
    admin: { ...config.server.admin, ...server.admin },
  };
  const listening = await listenAdmin(
    { ...config, server: settings },
    defaultPort,
    { nextId: () => 'id', refuse: refuseWire, log },
    notReady,
  );
  undo.push(() => listening.admin?.close());
  return listening;
}

describe('the admin listener', () => {
  it('listens on loopback, and is not ready until its handler is set', async () => {
    const { admin } = await listen({ port: 0 }, 9);
    expect(admin?.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const url = new URL('/metrics', admin?.url);
    expect((await fetch(url)).status).toBe(503);
    admin?.serve((_request, response) => void response.end('numbers'));
    expect(await (await fetch(url)).text()).toBe('numbers');
    expect(warnings).toEqual([]);
  });

  it('speaks TLS with server.admin.tls, and refuses plain HTTP [admin-tls]', async () => {
    const { ca, valid } = createCertificates(['127.0.0.1'], Date.now());
    const tls = { cert: join(folder, 'admin.crt'), key: join(folder, 'admin.key') };
    await expect(listen({ port: 0, admin: { tls } }, 9)).rejects.toThrow(
      /admin\.crt.*check --admin-tls-cert/,
    );
    writeFileSync(tls.cert, valid.cert);
    writeFileSync(tls.key, valid.key);
    const { admin } = await listen({ port: 0, admin: { tls } }, 9);
    expect(admin?.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    const dispatcher = new Agent({ connect: { ca } });
    undo.push(() => dispatcher.close());
    expect((await undiciFetch(`${admin?.url}/metrics`, { dispatcher })).status).toBe(503);
    await expect(fetch(`${admin?.url.replace('https', 'http')}/metrics`)).rejects.toThrow();
  });

  it('says in the log and in the welcome what is missing if its default port is taken, and the server runs without it [admin-port-taken]', async () => {
    const port = await takenPort();
    const listening = await listen({ port: 8080 }, port);
    const missing = `without the console, the operators' API and /metrics: port ${port} on 127.0.0.1`;
    expect(warnings).toEqual([
      {
        fields: { host: '127.0.0.1', port },
        message: expect.stringMatching(new RegExp(`${missing}.*--admin-port`)),
      },
    ]);
    const { withoutAdmin } = listening;
    const lines = adminLines({ adminUrl: null, withoutAdmin }, 'berth operators create me');
    expect(lines.flat().join(' ')).toMatch(new RegExp(`^console none: .*${missing}.*--admin-port 0`));
  });

  it('refuses to start if its configured port is taken', async () => {
    const port = await takenPort();
    await expect(listen({ port: 8080, admin: { port } }, 9)).rejects.toThrow(
      new RegExp(`Port ${port} on 127\\.0\\.0\\.1, for the admin listener, is taken .* --admin-port`),
    );
  });

  it('refuses to start on an address that is not of this machine', async () => {
    await expect(listen({ port: 0, admin: { host: '192.0.2.1' } }, 9)).rejects.toThrow(/--admin-host/);
  });

  it('takes any free port if the server does', async () => {
    const port = await takenPort();
    const { admin } = await listen({ port: 0 }, port);
    expect(admin?.url).not.toContain(`:${port}`);
    expect(warnings).toEqual([]);
  });
});
