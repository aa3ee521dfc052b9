import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { bundledCatalogFile } from '../../src/config/load.ts';
import { type Client, createClient, until } from '../support/http/http-client.ts';
import { runBerth, startServing, temporaryFolder, writeFastConfig } from '../support/processes/process.ts';

const OFFER = 'h100-sxm-1x';
const bundled = readFileSync(bundledCatalogFile(), 'utf8');
const priced = (price: string): string =>
  bundled.replace(new RegExp(`(id: ${OFFER}\\n[\\s\\S]*?price_per_hour: )[\\d.]+`), `$1${price}`);

/** Another Berth reads it anew within ten seconds of `berth reload`. */
const PACE = { everyMs: 100, withinMs: 60_000 };

async function priceOf(client: Client): Promise<unknown> {
  const { body } = await client.request('GET', '/configurations');
  const offers = body['configurations'] as { id: string; price_per_hour: number }[];
  return offers.find(({ id }) => id === OFFER)?.price_per_hour;
}

it('reads the catalog anew at SIGHUP and at `berth reload`, goes on with the old one when the new one is wrong [reload-by-signal]', async () => {
  using folder = temporaryFolder();
  const catalog = join(folder.path, 'catalog.yaml');
  copyFileSync(bundledCatalogFile(), catalog);
  const config = writeFastConfig(folder.path, { more: 'catalog: catalog.yaml\n' });
  await using berth = await startServing(['--config', config]);
  const client = createClient(berth.baseUrl, berth.apiKey);
  const becomes = (price: number) =>
    until(
      async () => (await priceOf(client)) === price,
      () => `the price does not become ${price}: ${berth.stderr}`,
      PACE,
    );

  writeFileSync(catalog, priced('1.25'));
  berth.child.kill('SIGHUP');
  await becomes(1.25);

  writeFileSync(catalog, priced('-3').replace('Frankfurt, Germany', 'Frankfurt am Main'));
  berth.child.kill('SIGHUP');
  const alarms = async () => (await runBerth(['alarms', 'ls', '--json', '--config', config])).stdout;
  await until(
    async () => (await alarms()).includes('reload_refused'),
    () => `no alarm: ${berth.stderr}`,
    PACE,
  );
  expect(await alarms()).toMatch(/catalog\.yaml:\d+:\d+/);
  expect(await priceOf(client)).toBe(1.25);

  const refused = await runBerth(['reload', '--config', config]);
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toMatch(/catalog\.yaml:\d+:\d+ .*price_per_hour/);

  writeFileSync(catalog, priced('2.5'));
  expect(await runBerth(['reload', '--config', config])).toMatchObject({ code: 0 });
  await becomes(2.5);
  await until(
    async () => !(await alarms()).includes('reload_refused'),
    () => 'the alarm stands',
    PACE,
  );

  const audit = await runBerth(['audit', 'ls', '--json', '--config', config]);
  const actors = [...audit.stdout.matchAll(/"actor": ?"([^"]+)"/g)].map(([, actor]) => actor);
  expect(actors.filter((actor) => actor === 'SIGHUP')).toHaveLength(2);
  expect(await berth.end()).toMatchObject({ code: 0, signal: null });
});
