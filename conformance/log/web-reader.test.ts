import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, serveTarget } from '../cli/cli.fixture.ts';
import { logKey, signedReport, temporaryFolder, writeLog } from './log.fixture.ts';
import { openLog } from './log.ts';
import { verifyInLog } from './verify-log.ts';
import { webReader } from './web-reader.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeAll(async () => {
  folder = temporaryFolder();
  await writeLog(folder.file('log'), Array(300).keys());
});
afterAll(() => folder[Symbol.dispose]());

/** A web server of files, as any is. */
const files: Answer = ({ url = '' }, response) => {
  try {
    response.end(readFileSync(join(folder.path, url)));
  } catch {
    response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>Not found</h1>');
  }
};

const LIMITS = { requestMs: 60_000, totalMs: 60_000 };

describe('a log behind a web server', () => {
  it('is verified by its files alone', async () => {
    await using server = await serveTarget(files);
    for (const url of [`${server.origin}/log`, `${server.origin}/log/`]) {
      const reader = webReader(url);
      const found = await verifyInLog(signedReport(297), { logKey: logKey.open, witnessKeys: [], reader });
      expect(found.proof).toMatchObject({ index: 297, checkpoint: { size: 300 } });
    }
    expect(new Set(server.requests)).toEqual(
      new Set(
        ['checkpoint', 'tile/entries/000', 'tile/entries/001.p/44', 'tile/0/001.p/44', 'tile/1/000.p/1'].map(
          (path) => `GET /log/${path}`,
        ),
      ),
    );
  });

  it('is read compressed, and no further than its limit', async () => {
    const bomb = gzipSync(Buffer.alloc(5_000_000));
    await using server = await serveTarget((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb);
    });
    const reader = webReader(server.origin);
    await expect(reader.read('checkpoint', 1000)).rejects.toThrow('more than 1000 bytes');
    expect((await reader.read('tile', 5_000_000))?.length).toBe(5_000_000);
  });

  it.each<[string, RegExp, Answer]>([
    [
      'an endless answer',
      /more than 100000 bytes/,
      (_request, response) => {
        const write = (): void => {
          while (!response.destroyed && response.write(Buffer.alloc(50_000)));
          if (!response.destroyed) response.once('drain', write);
        };
        write();
      },
    ],
    ['a server error', /was answered 500/, (_request, response) => void response.writeHead(500).end()],
    [
      'a redirect',
      /was answered 302/,
      (_request, response) => void response.writeHead(302, { location: '/log/checkpoint' }).end(),
    ],
    [
      'a closed connection',
      /failed: (UND_ERR_SOCKET|ECONNRESET)/,
      (_request, response) => void response.destroy(),
    ],
    ['a page of HTML', /not a signed note/, (_request, response) => void response.end('<h1>Sign in</h1>\n')],
    ['nothing there', /it is not a log/, (_request, response) => void response.writeHead(404).end()],
  ])('with %s is not taken for a log', async (_what, why, answer) => {
    await using server = await serveTarget(answer);
    await expect(openLog(webReader(server.origin), logKey.open)).rejects.toThrow(why);
  });

  it('has a limit for each answer and for all together', async () => {
    await using server = await serveTarget((_request, response) => void response.write('x'));
    const one = webReader(server.origin, { ...LIMITS, requestMs: 20 });
    await expect(one.read('checkpoint', 1000)).rejects.toThrow('longer than 0.02 s');
    const all = webReader(server.origin, { ...LIMITS, totalMs: 20 });
    await expect(all.read('checkpoint', 1000)).rejects.toThrow('longer than 0.02 s in all');
  });

  it('that nothing answers for, or whose address is none, is named', async () => {
    const free = createServer();
    await new Promise<void>((resolve) => free.listen(0, '127.0.0.1', resolve));
    const { port } = free.address() as { port: number };
    await new Promise((resolve) => free.close(resolve));
    await expect(webReader(`http://127.0.0.1:${port}`).read('checkpoint', 10)).rejects.toThrow(
      'ECONNREFUSED',
    );
    expect(() => webReader('ftp://log.example')).toThrow('not a URL of http');
    expect(() => webReader('https://log.example/?x=1')).toThrow('no user, query or fragment');
  });
});
