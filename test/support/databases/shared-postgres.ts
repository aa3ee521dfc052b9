import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { EmbeddedServer } from './embedded-postgres.ts';
import { STARTER, startWithTemplates } from './postgres.ts';

/** One PostgreSQL for all files of a run. The first that asks for it has it started; each makes its own databases. */
export async function setup(): Promise<() => Promise<void>> {
  let starting: Promise<EmbeddedServer> | undefined;
  const starter = createServer((_request, response) => {
    starting ??= startWithTemplates();
    starting.then(
      ({ url }) => response.end(url),
      (error: Error) => response.writeHead(500).end(error.message),
    );
  });
  starter.listen(0, '127.0.0.1');
  await once(starter, 'listening');
  process.env[STARTER] = `http://127.0.0.1:${(starter.address() as AddressInfo).port}`;
  return async () => {
    delete process.env[STARTER];
    starter.close();
    starter.closeAllConnections();
    const started = await starting?.catch(() => undefined);
    await started?.stop();
  };
}
