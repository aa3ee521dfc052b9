import { type AddressInfo, createServer } from 'node:net';

const PORTS = { first: 20_000, count: 10_000 };

/** A free port below those that the system hands out, so that no other process takes it while its server is down. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = PORTS.first + Math.floor(Math.random() * PORTS.count);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve((server.address() as AddressInfo).port === port));
    });
    await new Promise((resolve) => server.close(resolve));
    if (isFree) return port;
  }
  throw new Error('no port is free');
}
