import { createHash } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, fetch as undiciFetch } from 'undici';
import { afterAll, describe, expect, it } from 'vitest';
import { createCertificates } from '../../src/compose/sandbox/certificates.ts';
import { beginCreate, isRefusingConnections } from '../support/http/begin-create.ts';
import { createClient, until } from '../support/http/http-client.ts';
import {
  BerthProcess,
  startServing,
  temporaryFolder,
  writeFastConfig,
} from '../support/processes/process.ts';

const root = temporaryFolder();
let count = 0;
afterAll(() => root[Symbol.dispose]());

function newConfig(more = ''): string[] {
  const folder = join(root.path, `run-${++count}`);
  return ['--config', writeFastConfig(folder, { more })];
}

async function statusOf(baseUrl: string, key: string): Promise<number> {
  return (await createClient(baseUrl, key).request('GET', '/configurations')).status;
}

/** Sends the request of a curl line. */
async function bodyOf(line: string): Promise<unknown> {
  const [, name = '', value = '', url = ''] = /^curl -H '(.+?): (.+)' (\S+)$/.exec(line) ?? [];
  return (await fetch(url, { headers: { [name]: value } })).json();
}

describe.concurrent('the first start', () => {
  it('prints one key, the base URL and a curl line that works as it stands', async () => {
    await using berth = new BerthProcess(['serve', '--port', '0', ...newConfig()]);
    const line = await berth.waitForOutput((stdout) => /^ +(curl .*)\n/m.exec(stdout)?.[1]);
    const [baseUrl = ''] = /http:\/\/127\.0\.0\.1:\d+\/v1/.exec(berth.stdout) ?? [];
    const keys = new Set(berth.stdout.match(/berth_\w+/g));
    expect(keys.size).toBe(1);
    expect(line).toContain(`${baseUrl}/availability`);
    expect(await bodyOf(line)).toHaveProperty('configurations');
  });

  it('is the only one that does', async () => {
    const config = newConfig();
    await using first = await startServing(config);
    expect(first.apiKey).toMatch(/^berth_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/);
    expect(await statusOf(first.baseUrl, first.apiKey)).toBe(200);
    expect(await first.end()).toMatchObject({ code: 0, signal: null });
    await using second = await startServing(config);
    expect(second.apiKey).toBe('');
    expect(await statusOf(second.baseUrl, first.apiKey)).toBe(200);
    await second.end();
    await using third = new BerthProcess(['serve', '--port', '0', ...config]);
    await third.waitForOutput((stdout) => (stdout.includes('curl') ? true : undefined));
    expect(third.stdout).toContain('Bearer <API_KEY>');
    expect(third.stdout).not.toMatch(/berth_\w/);
  });

  it('creates the database in .berth under the working directory by default', async () => {
    using folder = temporaryFolder();
    await using berth = await startServing([], { cwd: folder.path });
    expect(await statusOf(berth.baseUrl, berth.apiKey)).toBe(200);
    await berth.end();
    expect(readdirSync(folder.path)).toEqual(['.berth']);
    expect(readdirSync(join(folder.path, '.berth'))).toContain('berth.db');
  });

  it('writes one line of JSON and nothing else with --json', async () => {
    await using berth = await startServing(newConfig());
    const { admin_url: adminUrl, ...line } = JSON.parse(berth.stdout);
    expect(line).toEqual({ base_url: berth.baseUrl, api_key: berth.apiKey });
    const numbers = await (await fetch(new URL('/metrics', adminUrl))).text();
    expect(numbers).toMatch(/^berth_store_up 1$/m);
    expect((await fetch(new URL('/metrics', berth.baseUrl))).status).toBe(404);
    const { stdout } = await berth.end();
    expect(stdout.trim().split('\n')).toHaveLength(1);
  });
});

describe.concurrent('BERTH_API_KEY', () => {
  it('is a key while the process runs, is not shown, not stored, and none is made beside it', async () => {
    const config = newConfig();
    const key = createHash('sha256').update(String(Math.random())).digest('hex');
    await using berth = await startServing(config, { env: { BERTH_API_KEY: key } });
    expect(berth.apiKey).toBe('');
    const client = createClient(berth.baseUrl, key);
    expect((await client.request('GET', '/configurations')).status).toBe(200);
    const token = await client.request('POST', '/auth/token', { body: { api_key: key } });
    expect(await statusOf(berth.baseUrl, String(token.body['access_token']))).toBe(200);
    const { stdout, stderr } = await berth.end();
    expect(stdout + stderr).not.toContain(key);

    await using later = await startServing(config);
    expect(await statusOf(later.baseUrl, key)).toBe(401);
    expect(await statusOf(later.baseUrl, String(token.body['access_token']))).toBe(401);
    expect(later.apiKey).toMatch(/^berth_/);
  });
});

describe.concurrent('TLS', () => {
  it('is spoken with a certificate and its key, and nothing else is', async () => {
    const { ca, valid } = createCertificates(['127.0.0.1'], Date.now());
    const tls = (['cert', 'key'] as const).flatMap((name) => {
      writeFileSync(join(root.path, name), valid[name]);
      return [`--tls-${name}`, join(root.path, name)];
    });
    await using berth = await startServing([...newConfig(), ...tls]);
    expect(berth.baseUrl).toMatch(/^https:\/\/127\.0\.0\.1:\d+\/v1$/);
    const dispatcher = new Agent({ connect: { ca } });
    const reply = await undiciFetch(`${berth.baseUrl}/availability`, {
      headers: { Authorization: `Bearer ${berth.apiKey}` },
      dispatcher,
    });
    expect(reply.status).toBe(200);
    await reply.arrayBuffer();
    await expect(fetch(`${berth.baseUrl.replace('https', 'http')}/availability`)).rejects.toThrow();
    expect(await berth.end()).toMatchObject({ code: 0 });
    await dispatcher.close();
  });
});

describe.concurrent('a signal', () => {
  const DRAIN_S = 20;
  const info = `server: { drain_s: ${DRAIN_S} }\n`;

  it.each(['SIGTERM', 'SIGINT'] as const)(
    '%s lets the request under way finish, waits for no idle connection, and exits 0',
    async (signal) => {
      const config = newConfig(info);
      await using berth = await startServing(config);
      const idle = new Agent({ keepAliveTimeout: 60_000, connections: 3 });
      await Promise.all(
        Array.from({ length: 3 }, async () => {
          const url = new URL('/healthz', berth.baseUrl);
          return (await undiciFetch(url, { dispatcher: idle })).text();
        }),
      );
      const create = await beginCreate(berth.baseUrl, berth.apiKey);
      berth.child.kill(signal);
      await until(
        () => isRefusingConnections(berth.baseUrl),
        () => 'it still takes connections',
      );
      expect(berth.child.exitCode).toBeNull();
      const reply = await create.finish();
      expect(reply).toContain('HTTP/1.1 201 Created');
      const { id } = JSON.parse(reply.slice(reply.lastIndexOf('\r\n\r\n')));
      expect(await berth.ended).toMatchObject({ code: 0, signal: null });
      await idle.destroy();

      await using again = await startServing(config);
      const client = createClient(again.baseUrl, berth.apiKey);
      expect(await client.waitFor(`/instances/${id}`, 'ONLINE')).toMatchObject({ id });
    },
  );

  it('drains from the moment on at which the process says that it is ready', async () => {
    await using berth = await startServing(newConfig());
    expect(await berth.end('SIGTERM')).toMatchObject({ code: 0, signal: null });
  });

  it('that comes again ends it at once', async () => {
    await using berth = await startServing(newConfig(info));
    const create = await beginCreate(berth.baseUrl, berth.apiKey);
    berth.child.kill('SIGTERM');
    await until(
      () => isRefusingConnections(berth.baseUrl),
      () => 'it still takes connections',
    );
    // The same signal so soon after may be npm's echo of it.
    expect(await berth.end('SIGINT')).toMatchObject({ code: null, signal: 'SIGINT' });
    await create.closed;
  });

  it('waits no longer than drain_s for a request that never ends', async () => {
    await using berth = await startServing(newConfig('server: { drain_s: 0.2 }\n'));
    const create = await beginCreate(berth.baseUrl, berth.apiKey);
    expect(await berth.end('SIGTERM')).toMatchObject({ code: 0, signal: null });
    await create.closed;
  });
});
