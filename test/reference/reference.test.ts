import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { packageRoot } from '../../src/config/package-root.ts';
import { cliPage } from './cli-page.ts';
import { configSchemas } from './config-schemas.ts';
import { configurationPage } from './configuration-page.ts';

describe('pages written from the code (npm run openapi writes them anew)', () => {
  it('docs/cli.md is what the commands say of themselves', async () => {
    await expect(await cliPage()).toMatchFileSnapshot('../../docs/cli.md');
  });

  it('docs/configuration.md is what the schemas and the example files say', async () => {
    await expect(configurationPage()).toMatchFileSnapshot('../../docs/configuration.md');
  });
});

describe.each(configSchemas())('schemas/$name.schema.json', ({ name, schema }) => {
  const validate = addFormats.default(new Ajv2020.default({ strict: false })).compile(schema);
  const read = (file: string) => parse(readFileSync(join(packageRoot(), file), 'utf8'));
  const file = {
    berth: 'berth.example.yaml',
    catalog: 'fixtures/catalogs/halyard.yaml',
    marketplace: 'marketplace.example.yaml',
    profile: 'fixtures/providers/provider-a.yaml',
  }[name];

  it('is that of the code', async () => {
    await expect(`${JSON.stringify(schema, null, 2)}\n`).toMatchFileSnapshot(
      `../../schemas/${name}.schema.json`,
    );
  });

  it('takes the example, and not an unknown key of it', () => {
    const example = read(String(file));
    validate(example);
    expect(validate.errors).toBeNull();
    expect(validate({ ...example, unknown_key: 1 })).toBe(false);
  });
});

it('the schema of berth.yaml knows the keys of each driver, also of several platforms', () => {
  const [berth] = configSchemas();
  const validate = addFormats.default(new Ajv2020.default({ strict: false })).compile(berth?.schema ?? {});
  const libvirt = parse(readFileSync(join(packageRoot(), 'examples/libvirt/berth.yaml'), 'utf8'));
  expect(validate(libvirt)).toBe(true);
  expect(validate({ platforms: { kvm: libvirt.platform, default: { driver: 'simulator', seed: 7 } } })).toBe(
    true,
  );
  expect(validate({ platforms: { kvm: { ...libvirt.platform, bogus: 1 } } })).toBe(false);
  expect(validate({ platform: { driver: 'simulator', hosts: [] } })).toBe(false);
  expect(validate({ platform: { boot_failure_rate: 2 } })).toBe(false);
});

it('every key of the catalog says what it is for', () => {
  expect(configurationPage()).not.toMatch(/^\| `(?:regions|offers)[^\n]*\|\s+\|$/m);
});
