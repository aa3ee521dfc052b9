import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { expect, it } from 'vitest';
import { createCertificates } from '../../src/compose/sandbox/certificates.ts';
import { HttpServer, type ServerOptions } from '../../src/http/wire/server.ts';
import { silentLog } from '../support/doubles/log.ts';
import { startServing, temporaryFolder } from '../support/processes/process.ts';

const MB = 1024;
const CONNECTIONS = 150;
/** Replies that each of as many clients reads before. */
const READ_BEFORE = 8;
const WATCHED_MS = 15_000;

/** Resident memory of a process, in MB. */
function residentMb(pid: number | undefined): number {
  const [, kb] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kb) / MB;
}

function open(baseUrl: string): Socket {
  const { port, protocol } = new URL(baseUrl);
  const address = { port: Number(port), host: '127.0.0.1' };
  const socket =
    protocol === 'https:' ? connectTls({ ...address, rejectUnauthorized: false }) : connect(address);
  return socket.on('error', () => undefined);
}

/** Sends some requests, one on each connection, and reads the replies to their end. */
async function readAll(baseUrl: string, request: string): Promise<void> {
  for (let count = 0; count < READ_BEFORE; count++) {
    const socket = open(baseUrl).resume();
    socket.write(request.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
    await once(socket, 'close');
  }
}

it.each([
  ['plain', '/openapi.json'],
  ['TLS', '/openapi.json'],
])(
  '%s: memory stays within 150 MB of the start under 150 clients that send GET %s over and over and read nothing',
  async (kind, path) => {
    using folder = temporaryFolder();
    const args: string[] = [];
    if (kind === 'TLS') {
      const { valid } = createCertificates(['127.0.0.1'], Date.now());
      for (const name of ['cert', 'key'] as const) {
        writeFileSync(join(folder.path, name), valid[name]);
        args.push(`--tls-${name}`, join(folder.path, name));
      }
    }
    await using berth = await startServing(args, { cwd: folder.path });
    const request = `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
    // What as many clients need that do read is not of those that do not.
    const readers = Array.from({ length: CONNECTIONS }, () => readAll(berth.baseUrl, request));
    await Promise.all(readers);
    const before = residentMb(berth.child.pid);
    const sockets = Array.from({ length: CONNECTIONS }, () => {
      const socket = open(berth.baseUrl).pause();
      socket.write(request.repeat(Math.ceil((10 * MB) / request.length)));
      return socket;
    });
    let most = before;
    for (const end = performance.now() + WATCHED_MS; performance.now() < end; await pause(100))
      most = Math.max(most, residentMb(berth.child.pid));
    for (const socket of sockets) socket.destroy();
    // The replies would take gigabytes; V8 alone grows by 48 MB when it likes.
    expect(most - before).toBeLessThan(150);
  },
);

it('a client that reads slowly is served on, and one that reads nothing is cut off', async () => {
  const options: ServerOptions = {
    host: '127.0.0.1',
    port: 0,
    requestTimeoutMs: 10_000,
    log: silentLog,
    nextId: () => 'id',
    refuse: () => ({ status: 400, code: 'malformed', body: {} }),
  };
  // More than the kernels' buffers on both sides.
  const reply = Buffer.alloc(32 * MB * MB);
  const server = new HttpServer((_request, response) => void response.end(reply), options);
  const baseUrl = `http://127.0.0.1:${await server.listen(options)}`;
  const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
  const slow = open(baseUrl);
  const stalled = open(baseUrl).pause();
  slow.write(request);
  stalled.write(request);
  const gone = new Promise((resolve) => void stalled.once('close', resolve));
  // What the server has ended cannot be written to.
  const probing = setInterval(() => stalled.write(' '), 1_000);
  let read = 0;
  slow.on('data', (bytes: Buffer) => {
    read += bytes.length;
    // 64 KB a time, at 50 to 100 KB a second: a megabyte, which is what the kernel waits for, takes longer than 10 s.
    slow.pause();
    setTimeout(() => slow.resume(), 700);
  });
  await gone.finally(() => clearInterval(probing));
  await pause(40_000);
  const readBefore = read;
  // What the kernels hold would still be read after a cut.
  slow.removeAllListeners('data').on('data', (bytes: Buffer) => {
    read += bytes.length;
  });
  slow.resume();
  for (const end = performance.now() + 60_000; read < reply.length && performance.now() < end; )
    await pause(200);
  expect(readBefore).toBeLessThan(16 * MB * MB);
  expect(read).toBeGreaterThan(reply.length);
  slow.destroy();
  await server.close(0);
});
