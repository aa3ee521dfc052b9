import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getRequestListener } from '@hono/node-server';
import { expect, it } from 'vitest';
import { Fatal } from '../../ports/errors.ts';
import { readScenario } from '../../sandbox/state/read-scenario.ts';
import { type Recorded, serveRecorder, serveReplay } from './recorder.ts';
import { createSandbox } from './sandbox.ts';

const ANY_PORT = { host: '127.0.0.1', port: 0 };

it('records a provider over HTTP, and replays it without the provider [sandbox-record-replay]', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-record-'));
  const file = join(folder, 'recordings', 'new', 'recorded.yaml');
  await using sandbox = await createSandbox();
  const { apiKey } = sandbox.provider('a');
  const provider = createServer(
    getRequestListener((request) => {
      const { pathname, search } = new URL(request.url);
      return sandbox.fetch(
        new Request(`http://sandbox.test/providers/provider-a${pathname}${search}`, request),
      );
    }),
  );
  await new Promise<void>((resolve) => void provider.listen(0, '127.0.0.1', resolve));
  const { port } = provider.address() as { port: number };
  const recordings: Recorded[] = [];
  try {
    const target = `http://127.0.0.1:${port}/v1`;
    const recorder = await serveRecorder({ target, file }, ANY_PORT, (recorded) => recordings.push(recorded));
    const ask = async (baseUrl: string, path: string, key: string) => {
      const reply = await fetch(`${baseUrl}${path}`, { headers: { Authorization: `Bearer ${key}` } });
      return { status: reply.status, body: await reply.json() };
    };
    const paths = ['/configurations', '/instances/none', '/volumes/locations'];
    const real = [];
    for (const path of paths) real.push(await ask(recorder.baseUrl, path, apiKey));
    await recorder.stop();
    expect(real.map(({ status }) => status)).toEqual([200, 404, 200]);
    expect(recordings.map(({ exchanges }) => exchanges.length)).toEqual([3]);
    expect(readScenario(file).recording).toMatchObject({ target });
    expect(readFileSync(file, 'utf8')).not.toContain(apiKey);
    expect(statSync(file).mode & 0o777).toBe(0o600);

    const replay = await serveReplay(file, ANY_PORT);
    expect(replay).toMatchObject({ target, count: 3 });
    for (const [index, path] of paths.entries())
      expect(await ask(replay.baseUrl, path, 'another-key')).toEqual(real[index]);
    await replay.stop();
    await expect(serveRecorder({ target, file }, ANY_PORT, () => undefined)).rejects.toThrow(
      'the file exists already',
    );
  } finally {
    await new Promise((resolve) => provider.close(resolve));
    rmSync(folder, { recursive: true });
  }
});

it.each(['gpu.example', 'ftp://gpu.example', 'https://user:pass@gpu.example/v1'])(
  'refuses the target %s before anything is written',
  async (target) => {
    const refused = serveRecorder({ target, file: '/nowhere/at/all' }, ANY_PORT, () => undefined);
    await expect(refused).rejects.toThrow(Fatal);
    await expect(refused).rejects.toThrow(/give the base URL of a provider/);
  },
);
