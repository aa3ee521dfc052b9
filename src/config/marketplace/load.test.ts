import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { checkConfig } from '../check.ts';
import { toLine } from '../findings.ts';
import { packageRoot } from '../package-root.ts';
import { loadMarketplaceConfig } from './load.ts';
import { bundledProfileFile, bundledProfileIds, loadProfile } from './load-profile.ts';
import { marketplaceConfigSchema } from './schema.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-marketplace-config-'));
afterAll(() => rmSync(folder, { recursive: true }));

function write(text: string): string {
  const file = join(folder, 'marketplace.yaml');
  writeFileSync(file, text);
  return file;
}

function findings(text: string): string[] {
  return checkConfig(write(text)).map((finding) => toLine(finding).replaceAll(`${folder}/`, ''));
}

const provider = '- { id: provider-a, base_url: "https://gpu.example/v1", api_key_env: KEY_A }';

describe('examples/marketplace.yaml', () => {
  const file = join(packageRoot(), 'examples/marketplace.yaml');

  it('loads, and every value in it is the default', () => {
    const example = loadMarketplaceConfig({ file, flags: {}, env: {} });
    const defaults = loadMarketplaceConfig({ flags: {}, env: {} });
    const database = `sqlite:${join(packageRoot(), 'examples/.berth/marketplace.db')}`;
    expect(example).toEqual({ ...defaults, database });
    expect(checkConfig(file)).toEqual([]);
  });

  it('names every key; keys without a default are in a comment', () => {
    const lines = readFileSync(file, 'utf8').split('\n');
    const keys = keysOf(z.toJSONSchema(marketplaceConfigSchema, { io: 'input' }));
    expect(keys.length).toBeGreaterThan(50);
    const absent = keys.filter((key) => !lines.some((line) => new RegExp(`^[ #]*(- )?${key}:`).test(line)));
    expect(absent).toEqual([]);
  });
});

describe('the configuration of a marketplace', () => {
  it('prefers flags to the environment, and the environment to the file', () => {
    const file = write('server: { port: 1, host: 10.0.0.1 }\ndatabase: sqlite:m.db\n');
    const env = { BERTH_MARKETPLACE_PORT: '2', BERTH_MARKETPLACE_CONFIG: file, BERTH_PORT: '4' };
    const config = loadMarketplaceConfig({ flags: { port: '3' }, env });
    expect(config.server).toMatchObject({ port: 3, host: '10.0.0.1' });
    expect(loadMarketplaceConfig({ flags: {}, env }).server.port).toBe(2);
    expect(config.database).toBe(`sqlite:${join(folder, 'm.db')}`);
  });

  it('finds files beside itself', () => {
    const file = write(
      'providers:\n- { id: provider-a, base_url: "https://gpu.example/v1", api_key_env: K, profile: a.yaml }\n',
    );
    expect(loadMarketplaceConfig({ file, flags: {}, env: {} }).providers[0]).toMatchObject({
      profile: join(folder, 'a.yaml'),
    });
  });

  it.each([
    [
      'a provider twice',
      `providers:\n${provider}\n${provider}\n`,
      '3:9 providers[1].id: duplicate id provider-a',
    ],
    [
      'a provider without a key',
      'providers:\n- id: provider-a\n  base_url: https://gpu.example/v1\n',
      '2:3 providers[0]: expected api_key_env',
    ],
    [
      'a key in the file itself',
      'providers:\n- { id: provider-a, base_url: "https://gpu.example/v1", api_key_env: K, api_key: secret }\n',
      '2:73 providers[0].api_key: unknown key; remove it or correct its spelling',
    ],
    [
      'a private address',
      'providers:\n- { id: provider-a, base_url: "https://10.0.0.7/v1", api_key_env: K }\n',
      '2:31 providers[0].base_url: expected a public address: 10.0.0.7 is private or reserved, which is not allowed without allow_private',
    ],
    [
      'a provider without a profile',
      'providers:\n- { id: acme, base_url: "https://gpu.example/v1", api_key_env: K }\n',
      `2:9 providers[0].id: Berth has no bundled profile for it: give a profile file in \`profile\` (bundled: ${bundledProfileIds().join(', ')})`,
    ],
    [
      'a discount that is too high',
      'providers: []\nbilling: { volume_discounts: [{ spend_usd: 1, percentage: 60 }] }\n',
      '2:59 billing.volume_discounts[0].percentage: expected at most 50',
    ],
    [
      'a user without a password',
      'providers: []\nmail: { host: h, from: a@b.example, user: u }\n',
      '2:43 mail.user: expected a user with password_env, or neither',
    ],
  ])('reports %s with its line', (_what, text, finding) => {
    expect(findings(text)).toEqual([`marketplace.yaml:${finding}`]);
  });

  it('accepts a private address and plain http if they are allowed', () => {
    const text = 'providers:\n- { id: provider-a, base_url: "http://127.0.0.1:1/v1", api_key_env: K }\n';
    expect(findings(text)).toHaveLength(1);
    expect(findings(text.replace('K }', 'K, allow_private: true }'))).toEqual([]);
  });

  it('needs no more than the id of a provider that is retired', () => {
    expect(findings('providers:\n- { id: acme, retired: true }\n')).toEqual([]);
    expect(findings('providers:\n- { id: provider-a, api_key_env: K }\n')).toEqual([
      'marketplace.yaml:2:3 providers[0].base_url: missing',
    ]);
  });

  it('checks the profiles that it names', () => {
    writeFileSync(join(folder, 'own.yaml'), 'id: own\nname: Own\nvolumes: null\n');
    expect(
      findings(
        'providers:\n- { id: own, base_url: "https://gpu.example/v1", api_key_env: K, profile: own.yaml }\n',
      ),
    ).toEqual(['own.yaml:1:1 machines is required: a list']);
  });

  it('has a profile for each provider that M: names', () => {
    expect(bundledProfileIds()).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((x) => `provider-${x}`));
    for (const id of bundledProfileIds()) expect(loadProfile(bundledProfileFile(id) ?? '').id).toBe(id);
  });
});

function keysOf(schema: z.core.JSONSchema.BaseSchema): string[] {
  const { properties = {}, items } = schema;
  const inner = Object.entries(properties).flatMap(([key, value]) => [
    key,
    ...(typeof value === 'boolean' ? [] : keysOf(value)),
  ]);
  const ofItems = typeof items === 'object' && !Array.isArray(items) ? keysOf(items as typeof schema) : [];
  return [...inner, ...ofItems];
}
