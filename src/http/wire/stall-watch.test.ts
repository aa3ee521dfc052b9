import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { connectionKey, readUnacknowledged } from './stall-watch.ts';

it.runIf(existsSync('/proc/net/tcp')).each(['127.0.0.1', '::ffff:127.0.0.1', '::1'])(
  'tells what a client at %s has not acknowledged, and that it is less when it has read',
  async (host) => {
    const server = createServer().listen(0, host);
    const opening = once(server, 'connection') as Promise<[Socket]>;
    await once(server, 'listening').catch(() => undefined);
    const client = connect({ port: (server.address() as { port: number }).port, host });
    const [socket] = await opening;
    socket.on('error', () => undefined);
    client.pause();
    socket.write(Buffer.alloc(32 * 1024 * 1024));
    const key = connectionKey(socket) ?? '';
    const read = async () => (await readUnacknowledged()).get(key) ?? Number.NaN;
    let before = await read();
    while (!(before > 0)) before = await read();
    client.resume();
    let now = before;
    while (now === before) now = await read();
    expect(now).toBeGreaterThanOrEqual(0);
    client.destroy();
    socket.destroy();
    server.close();
  },
);
