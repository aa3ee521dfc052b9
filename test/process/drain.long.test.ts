import { join } from 'node:path';
import { expect, it } from 'vitest';
import { beginCreate, isRefusingConnections } from '../support/http/begin-create.ts';
import { createClient, until } from '../support/http/http-client.ts';
import { faultsOf, readLedger } from '../support/ledger.ts';
import { startServing, temporaryFolder, writeFastConfig } from '../support/processes/process.ts';
import { instanceRequest } from '../support/rows/requests.ts';

const DRAIN_S = 20;

it('SIGTERM with 50 creates under way: it ends within drain_s, and after the next start every 201 is there and comes ONLINE, one machine for each [drain-on-sigterm]', async () => {
  using root = temporaryFolder();
  const folder = join(root.path, 'many');
  const config = [
    '--config',
    writeFastConfig(folder, { more: `server: { drain_s: ${DRAIN_S} }\n`, stepMs: 1_200 }),
  ];
  await using berth = await startServing(config);
  const { baseUrl, apiKey } = berth;
  const arriving = Promise.all(Array.from({ length: 25 }, () => beginCreate(baseUrl, apiKey)));
  const client = createClient(baseUrl, apiKey);
  const beingMade = Array.from({ length: 25 }, () =>
    client.request('POST', '/instances', { body: instanceRequest() }),
  );
  const ids = (await Promise.all(beingMade)).map(({ body }) => String(body['id']));
  const creates = await arriving;
  berth.child.kill('SIGTERM');
  await until(
    () => isRefusingConnections(baseUrl),
    () => 'it still takes connections',
  );
  for (const reply of await Promise.all(creates.map((create) => create.finish()))) {
    expect(reply).toContain('HTTP/1.1 201 Created');
    ids.push(JSON.parse(reply.slice(reply.lastIndexOf('\r\n\r\n'))).id);
  }
  expect(await berth.ended).toMatchObject({ code: 0, signal: null });
  expect(berth.stderr).not.toContain('still run at the end of server.drain_s');
  const before = readLedger(join(folder, 'data', 'berth.db')).instances;
  expect(before.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  expect(before.map(({ status }) => status)).toContain('PROVISIONING');

  await using again = await startServing(config);
  const later = createClient(again.baseUrl, apiKey);
  await until(
    async () => {
      const { instances } = (await later.request('GET', '/instances')).body;
      const listed = instances as { id: string; status: string }[];
      expect(listed.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
      return listed.every(({ status }) => status === 'ONLINE');
    },
    () => 'not every instance is ONLINE',
  );
  await again.end();
  const ledger = readLedger(join(folder, 'data', 'berth.db'));
  expect([ledger.machines.length, faultsOf(ledger)]).toEqual([50, []]);
});
