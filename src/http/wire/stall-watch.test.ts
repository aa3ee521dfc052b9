import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { connectionKey, readUnacknowledged } from './stall-watch.ts';

it('reads what a client has not acknowledged, and that it is less when the client has read', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  const opening = once(server, 'connection') as Promise<[Socket]>;
  await once(server, 'listening');
  const client = connect({ port: (server.address() as { port: number }).port, host: '127.0.0.1' });
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
});

// As /proc/net/tcp and /proc/net/tcp6 have them on a little-endian machine.
it.each([
  ['127.0.0.1', '0100007F'],
  ['::ffff:127.0.0.1', '0000000000000000FFFF00000100007F'],
  ['::1', '00000000000000000000000001000000'],
  ['fe80::1%eth0', '000080FE000000000000000001000000'],
])(
  'finds the connection of a client at %s by its address in the kernel’s notation',
  (remoteAddress, words) => {
    const socket = { localPort: 443, remoteAddress, remotePort: 51_966 } as Socket;
    expect(connectionKey(socket)).toBe(`01BB ${words}:CAFE`);
  },
);
