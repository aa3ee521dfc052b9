import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { packageRoot } from '../../src/config/package-root.ts';
import type { DriverDefinition } from '../../src/drivers/kit/driver-definition.ts';
import { driverNamed, drivers } from '../../src/drivers/registry.ts';
import { alarmKinds } from '../../src/orchestrator/model/alarm.ts';
import { cliPage } from './cli-page.ts';
import { configSchemas, placesOf } from './config-schemas.ts';
import { configurationPage, profilesPage } from './configuration-page.ts';
import { driversPage } from './drivers-page.ts';
import { metricsPage, publishedMetrics } from './metrics-page.ts';

describe('pages written from the code (npm run generate writes them anew)', () => {
  it('docs/cli.md is what the commands say of themselves', async () => {
    await expect(await cliPage()).toMatchFileSnapshot('../../docs/cli.md');
  });

  it('docs/drivers.md is what the manifests say', async () => {
    await expect(await driversPage()).toMatchFileSnapshot('../../docs/drivers.md');
  });

  it.each(drivers)(
    'docs/drivers.md names pages and tests of $name that exist, and whole sentences',
    ({ about }) => {
      const { provedOn, provedBy, traps, guide } = about;
      for (const file of [...provedBy, `docs/${guide}`])
        expect([file, existsSync(join(packageRoot(), file))]).toEqual([file, true]);
      expect([provedOn.length, provedBy.length, traps.length]).not.toContain(0);
      for (const trap of traps) expect(trap).toMatch(/^[A-Z`].*\.$/);
    },
  );

  it('docs/drivers.md has a column for each manifest of a registered driver, and its section', async () => {
    const known = driverNamed('libvirt');
    const about = { ...known.about, traps: ['It is another one.'] };
    const added: DriverDefinition = { ...known, name: 'metal', about };
    const [before, after] = [await driversPage(), await driversPage([...drivers, added])];
    expect(before).not.toContain('metal');
    expect(after).toMatch(/\n\| \| `metal` \| /);
    expect(after).toMatch(/\n## metal\n[^#]+\n- It is another one\.\n/);
  });

  it('docs/configuration.md is what the schemas and the example files say', async () => {
    await expect(configurationPage()).toMatchFileSnapshot('../../docs/configuration.md');
  });

  it('docs/profiles.md is what the schema of a profile says', async () => {
    await expect(profilesPage()).toMatchFileSnapshot('../../docs/profiles.md');
  });
});

describe.each(configSchemas())('openapi/$name.schema.json', ({ name, schema }) => {
  const validate = addFormats.default(new Ajv2020.default({ strict: false })).compile(schema);
  const read = (file: string) => parse(readFileSync(join(packageRoot(), file), 'utf8'));
  const file = {
    berth: 'examples/berth.yaml',
    catalog: 'fixtures/catalogs/halyard.yaml',
    marketplace: 'examples/marketplace.yaml',
    profile: 'fixtures/providers/provider-a.yaml',
  }[name];

  it('is that of the code', async () => {
    await expect(`${JSON.stringify(schema, null, 2)}\n`).toMatchFileSnapshot(
      `../../openapi/${name}.schema.json`,
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

it.each(['catalog', 'profile'])('every key of the %s has a description', (wanted) => {
  const { schema } = configSchemas().find(({ name }) => name === wanted) ?? { schema: {} };
  const places = placesOf(schema);
  expect(places.length).toBeGreaterThan(35);
  expect(places.filter(({ schema: { description } }) => description === undefined)).toEqual([]);
});

describe('docs/operations', () => {
  const read = (file: string) => readFileSync(join(packageRoot(), 'docs', file), 'utf8');
  const rules = (): { alert: string; expr: string; annotations: { runbook: string } }[] =>
    parse(read('operations/alerts.yaml')).groups.flatMap((group: { rules: [] }) => group.rules);
  const panels = (): { targets: { expr: string }[] }[] =>
    JSON.parse(read('operations/dashboard.json')).panels;

  it('docs/metrics.md is what the servers tell', async () => {
    await expect(await metricsPage()).toMatchFileSnapshot('../../docs/metrics.md');
  });

  it('alerts and dashboard name only figures and labels that there are', async () => {
    const { orchestrator, marketplace } = await publishedMetrics();
    const known = new Map([...orchestrator, ...marketplace].map(({ name, labels }) => [name, labels]));
    const expressions = [
      ...rules().map(({ expr }) => expr),
      ...panels().flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    ];
    expect(expressions.length).toBeGreaterThan(20);
    for (const expression of expressions) {
      const [name = 'up'] = /berth_[a-z_]+/.exec(expression.replaceAll(/_bucket\b/g, '')) ?? [];
      expect([expression, name === 'up' || known.has(name)]).toEqual([expression, true]);
      const [, labels = ''] = /by \(([a-z, ]+)\)/.exec(expression) ?? [];
      for (const label of labels.split(', ').filter((one) => !['', 'le', 'instance'].includes(one)))
        expect([expression, label, known.get(name)]).toEqual([
          expression,
          label,
          expect.arrayContaining([label]),
        ]);
    }
  });

  it('a rule about a figure that counts time comes when its time is over, not some minutes later', async () => {
    const { orchestrator, marketplace } = await publishedMetrics();
    // How far two clocks are apart is a length that does not grow by itself.
    const times = [...orchestrator, ...marketplace].filter(
      ({ name, type }) => type === 'gauge' && name.endsWith('_seconds') && !name.endsWith('_offset_seconds'),
    );
    const about = rules().filter(({ expr }) => times.some(({ name }) => expr.includes(name)));
    expect(about.length).toBeGreaterThan(8);
    expect(about.filter((rule) => 'for' in rule)).toEqual([]);
    for (const name of ['BerthMarketplaceProviderSilent', 'BerthMarketplaceProviderCallsFail'])
      expect(rules().find(({ alert }) => alert === name)?.expr).toMatch(/_seconds > 300\b/);
  });

  it('the runbook knows every alarm', () => {
    const named = [...read('runbook.md').matchAll(/^\| (`[a-z_` ]+`) \|/gm)].flatMap(
      ([, kinds = '']) => kinds.match(/[a-z_]+/g) ?? [],
    );
    expect(named.toSorted()).toEqual([...alarmKinds].toSorted());
  });

  it('each alert leads to its section of the runbook', () => {
    const anchors = [...read('runbook.md').matchAll(/^## (.+)$/gm)].map(([, heading = '']) =>
      heading.toLowerCase().replaceAll(' ', '-'),
    );
    for (const { alert, annotations } of rules())
      expect([alert, anchors.includes(annotations.runbook.replace('runbook.md#', ''))]).toEqual([
        alert,
        true,
      ]);
  });
});
