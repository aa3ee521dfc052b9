import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { instanceRequest } from '../../../test/support/rows/requests.ts';
import { until } from '../../../test/support/time/until.ts';
import { bundledCatalogFile, loadConfig } from '../../config/load.ts';
import type { Configuration } from '../../contract/configuration.ts';
import { type Serving, serveOrchestrator } from './orchestrator.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-reload-'));
const file = (name: string): string => join(folder, name);
const OFFER = 'h100-sxm-1x';
let served: Serving;

const berthYaml = (more = '') =>
  [
    'catalog: catalog.yaml',
    'server: { port: 0, admin: { port: 0 } }',
    `database: sqlite:${file('berth.db')}`,
    'log_level: silent',
    more,
  ].join('\n');

/** Writes the catalog of the next reload. */
function write(change: (text: string) => string): void {
  writeFileSync(file('catalog.yaml'), change(readFileSync(bundledCatalogFile(), 'utf8')));
}

const withPrice = (price: string) => (text: string) =>
  text.replace(new RegExp(`(id: ${OFFER}\\n[\\s\\S]*?price_per_hour: )[\\d.]+`), `$1${price}`);
const withTwin = (text: string) => {
  const [twin] = / {2}- id: h100-sxm-1x\n[\s\S]*?\n(?=\n| {2}- )/.exec(text) ?? [''];
  return `${text}\n${twin.replace(OFFER, 'twin')}`;
};

async function call<Body>(method: string, path: string, body?: object): Promise<Body> {
  const response = await fetch(`${served.baseUrl}${path}`, {
    method,
    headers: { Authorization: `Bearer ${served.apiKey}`, 'Content-Type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return (await response.json()) as Body;
}

async function offer(id: string): Promise<Configuration | undefined> {
  const { configurations } = await call<{ configurations: Configuration[] }>('GET', '/configurations');
  return configurations.find((one) => one.id === id);
}

/**
 * The audit row of the newest reload. The server runs in this process: a second connection that waited for its lock
 * would block forever.
 */
function audited(): object {
  const database = new Database(file('berth.db'), { readonly: true });
  try {
    const entry = database.prepare('SELECT * FROM audit ORDER BY id DESC LIMIT 1').get() as {
      detail: string;
    };
    return { ...entry, detail: JSON.parse(entry.detail) as object };
  } finally {
    database.close();
  }
}

beforeAll(async () => {
  copyFileSync(bundledCatalogFile(), file('catalog.yaml'));
  writeFileSync(file('berth.yaml'), berthYaml());
  const load = () => loadConfig({ file: file('berth.yaml'), flags: {}, env: {} }).config;
  served = await serveOrchestrator({ config: load(), env: {}, load });
});
afterAll(async () => {
  await served.stop();
  rmSync(folder, { recursive: true });
});

it('sells at the new price, and sells new offers of a running platform [reload-catalog]', async () => {
  write((text) => withTwin(withPrice('1.25')(text)));
  await served.reload();
  expect((await offer(OFFER))?.price_per_hour).toBe(1.25);
  const request = instanceRequest({ configuration_id: 'twin', region: 'eu-frankfurt' });
  const { id } = await call<{ id: string }>('POST', '/instances', request);
  const read = () => call<{ status: string }>('GET', `/instances/${id}`);
  await until('it is made', async () => (await read()).status === 'ONLINE');
  expect(audited()).toMatchObject({
    action: 'configuration.reload',
    actor: 'SIGHUP',
    outcome: 'done',
    detail: { added: ['offer twin'], removed: [], changed: [`offer ${OFFER}`], needs_restart: [] },
  });
});

it('is refused whole if one price is wrong, and the previous catalog stays [reload-whole]', async () => {
  write((text) => withPrice('-3')(text).replace('Frankfurt, Germany', 'Frankfurt am Main'));
  const before = await offer(OFFER);
  await expect(served.reload()).rejects.toThrow(/catalog\.yaml:\d+:\d+ offers\[\d+\]\.price_per_hour/);
  expect(await offer(OFFER)).toEqual(before);
  expect(await offer('twin')).toBeDefined();
  expect(audited()).toMatchObject({ outcome: 'refused' });
});

it('names what only a restart can change, and takes the catalog of another file', async () => {
  write(withPrice('2.5'));
  copyFileSync(file('catalog.yaml'), file('other.yaml'));
  writeFileSync(
    file('berth.yaml'),
    berthYaml('quotas: { instances: 3 }').replace('catalog.yaml', 'other.yaml'),
  );
  await served.reload();
  expect((await offer(OFFER))?.price_per_hour).toBe(2.5);
  expect(await offer('twin')).toBeUndefined();
  expect(audited()).toMatchObject({
    detail: { catalog: file('other.yaml'), removed: ['offer twin'], needs_restart: ['quotas'] },
  });
});
