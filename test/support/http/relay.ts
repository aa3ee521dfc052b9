import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';

/** A relay of TCP on a port of its own, in front of a server that may go away and come back on another port. */
export interface Relay extends AsyncDisposable {
  origin: string;
  /** Where new connections lead from now on; null: they end at once, and so do those that are open. */
  lead(to: string | null): void;
  /** While it hangs, no byte passes, and every connection stays open. */
  hang(hangs: boolean): void;
}

export async function startRelay(): Promise<Relay> {
  const sockets = new Set<Socket>();
  let target: URL | null = null;
  let hangs = false;
  const server = createServer((client) => {
    if (target === null) {
      client.destroy();
      return;
    }
    const upstream = connect(Number(target.port), target.hostname);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on('error', () => undefined);
      from.once('close', () => {
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
      if (hangs) from.pause();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const end = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lead: (to) => {
      target = to === null ? null : new URL(to);
      if (to === null) end();
    },
    hang: (now) => {
      hangs = now;
      for (const socket of sockets) now ? socket.pause() : socket.resume();
    },
    async [Symbol.asyncDispose]() {
      end();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
