import { mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { HttpServer } from '../../http/wire/server.ts';
import { refuseWire } from '../../orchestrator/http/errors.ts';
import type { Log } from '../../ports/log.ts';
import { createCertificates } from '../sandbox/certificates.ts';
import { readTls, renewTls, stampOf } from './tls.ts';

const NOW = Date.UTC(2026, 10, 27);
const LOOK_MS = 30_000;

let folder: string;
let files: { cert: string; key: string };
const logged: string[] = [];
const collect = (_fields: object, message?: string) => void logged.push(String(message));
const log: Log = { debug: collect, info: collect, warn: collect, error: collect };
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-tls-'));
  files = { cert: join(folder, 'tls.crt'), key: join(folder, 'tls.key') };
  logged.length = 0;
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Writes new files and renames them into place, as renewal tools do. */
function issue(name: string, which: readonly ('cert' | 'key')[] = ['cert', 'key']): void {
  const { valid } = createCertificates([name], NOW);
  for (const one of which) {
    writeFileSync(join(folder, 'new'), valid[one]);
    renameSync(join(folder, 'new'), files[one]);
  }
}

async function open(port: number): Promise<TLSSocket> {
  const options: ConnectionOptions = { host: '127.0.0.1', port, rejectUnauthorized: false };
  const socket = connect(options);
  await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
  return socket;
}

async function nameAt(port: number): Promise<string> {
  const socket = await open(port);
  const { subjectaltname } = socket.getPeerCertificate();
  socket.destroy();
  return String(subjectaltname);
}

async function ask(socket: TLSSocket): Promise<string> {
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  return new Promise((resolve) => socket.once('data', (data) => resolve(data.toString())));
}

describe('a renewed certificate', () => {
  it('is used by new connections without a restart; open ones stay, and half of a pair changes nothing', async () => {
    issue('first');
    const clock = new VirtualClock();
    const server = new HttpServer((_request, response) => void response.end('here'), {
      host: '127.0.0.1',
      port: 0,
      tls: readTls(files),
      requestTimeoutMs: 30_000,
      nextId: () => 'id',
      refuse: refuseWire,
      log,
    });
    const port = await server.listen({ host: '127.0.0.1', port: 0 });
    const seen: string[] = [];
    renewTls(files, server, { clock, log, seen: (one) => void seen.push(Object(one).pem) });
    const early = await open(port);
    try {
      expect(await nameAt(port)).toBe('DNS:first');
      issue('second', ['cert']);
      await clock.advance(3 * LOOK_MS);
      expect(await nameAt(port)).toBe('DNS:first');
      expect(logged).toEqual(['the old certificate stays in use']);
      issue('third');
      await clock.advance(LOOK_MS);
      expect(await nameAt(port)).toBe('DNS:third');
      expect(logged.at(-1)).toBe('new connections use the renewed certificate');
      expect(seen).toEqual([readFileSync(files.cert, 'utf8')]);
      expect(await ask(early)).toContain('here');
      writeFileSync(files.cert, readFileSync(files.key));
      await clock.advance(LOOK_MS);
      expect(await nameAt(port)).toBe('DNS:third');
    } finally {
      early.destroy();
      await server.close(0);
    }
  });

  it('that cannot be read, as behind circular links, is logged once and the old one stays', async () => {
    issue('first');
    const clock = new VirtualClock();
    const used: string[] = [];
    const server = {
      useTls: ({ cert }: { cert: Buffer }) => void used.push(cert.toString()),
      onClosed: () => undefined,
    };
    renewTls(files, server, { clock, log });
    rmSync(files.cert);
    symlinkSync(files.cert, files.cert);
    await clock.advance(3 * LOOK_MS);
    expect([logged, used]).toEqual([['the old certificate stays in use'], []]);
    issue('second');
    await clock.advance(LOOK_MS);
    expect(used).toEqual([readFileSync(files.cert, 'utf8')]);
  });

  it('is used if the files changed while the server was starting', async () => {
    issue('first');
    const stamp = stampOf(files);
    const clock = new VirtualClock();
    const used: string[] = [];
    issue('second');
    const server = {
      useTls: ({ cert }: { cert: Buffer }) => void used.push(cert.toString()),
      onClosed: () => undefined,
    };
    renewTls(files, server, { clock, log, stamp });
    await clock.advance(LOOK_MS);
    expect(used).toEqual([readFileSync(files.cert, 'utf8')]);
  });
});
