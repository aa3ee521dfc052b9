import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { Connection } from './connection.ts';
import { OpenConnections } from './open-connections.ts';

let ports = 0;

/** A fake socket from any address. */
function socketFrom(remoteAddress: string): Socket {
  const socket = new EventEmitter() as EventEmitter & Partial<Socket>;
  return Object.assign(socket, {
    remoteAddress,
    remotePort: ++ports,
    destroy: () => {
      Object.assign(socket, { destroyed: true });
      socket.emit('close');
    },
  }) as unknown as Socket;
}

/** Opens a connection, with or without a pending reply. */
function openFrom(connections: OpenConnections, address: string, isIdle: boolean): Socket | undefined {
  const socket = socketFrom(address);
  if (!connections.admit(socket)) return undefined;
  connections.attach({ socket, isIdle } as unknown as Connection);
  return socket;
}

describe('connections of one address', () => {
  it('are refused if all are in use; those of another address are accepted', () => {
    const connections = new OpenConnections(3);
    for (let count = 0; count < 3; count++) expect(openFrom(connections, '192.0.2.1', false)).toBeDefined();
    expect(openFrom(connections, '192.0.2.1', false)).toBeUndefined();
    expect(openFrom(connections, '::ffff:192.0.2.1', false)).toBeUndefined();
    expect(openFrom(connections, '192.0.2.2', false)).toBeDefined();
  });

  it('close the oldest idle connection to make room', () => {
    const connections = new OpenConnections(3);
    const [busy, older, younger] = [false, true, true].map((isIdle) =>
      openFrom(connections, '192.0.2.1', isIdle),
    );
    expect(openFrom(connections, '192.0.2.1', false)).toBeDefined();
    expect([busy?.destroyed, older?.destroyed, younger?.destroyed]).toEqual([undefined, true, undefined]);
  });

  it('are no longer counted once closed', () => {
    const connections = new OpenConnections(1);
    openFrom(connections, '192.0.2.1', false)?.destroy();
    expect(openFrom(connections, '192.0.2.1', false)).toBeDefined();
    expect([...connections]).toHaveLength(1);
  });

  it('are counted for each /64 in IPv6, which is one customer', () => {
    const connections = new OpenConnections(1);
    expect(openFrom(connections, '2001:db8::1', false)).toBeDefined();
    expect(openFrom(connections, '2001:db8::2', false)).toBeUndefined();
    expect(openFrom(connections, '2001:db8:0:1::1', false)).toBeDefined();
  });

  it.each(['127.0.0.1', '127.8.8.8', '::1', '::ffff:127.0.0.1'])('are not counted for %s', (address) => {
    const connections = new OpenConnections(1);
    for (let count = 0; count < 5; count++) expect(openFrom(connections, address, false)).toBeDefined();
  });
});
