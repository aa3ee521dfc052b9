import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { HttpServer, type ServerOptions } from '../../src/http/wire/server.ts';
import { silentLog } from '../support/doubles/log.ts';

const MB = 1024 * 1024;

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
  const reply = Buffer.alloc(32 * MB);
  const server = new HttpServer((_request, response) => void response.end(reply), options);
  const port = await server.listen(options);
  const open = () => connect(port, '127.0.0.1').on('error', () => undefined);
  const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
  const slow = open();
  const stalled = open().pause();
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
  expect(readBefore).toBeLessThan(16 * MB);
  expect(read).toBeGreaterThan(reply.length);
  slow.destroy();
  await server.close(0);
});
