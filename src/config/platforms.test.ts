import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { DriverDefinition } from '../drivers/kit/driver-definition.ts';
import { drivers } from '../drivers/registry.ts';
import { catalogOf } from '../orchestrator/catalog/catalog.ts';
import { checkConfig } from './check.ts';
import { toLine } from './findings.ts';
import { loadCatalog, loadConfigAs } from './load.ts';
import { platformsOf, sellingPlatforms } from './platforms.ts';
import { configSchemaFor } from './schema.ts';

const metalSchema = z.strictObject({ driver: z.literal('metal'), rack: z.string() });
/** A fictitious driver. Its offers name the group of hosts for their machines. */
const metal: DriverDefinition<z.infer<typeof metalSchema>> = {
  name: 'metal',
  about: { provedOn: '', provedBy: [], traps: [], guide: '' },
  configSchema: metalSchema,
  offerSchema: z.strictObject({ host_group: z.string().default('any') }),
  check: () => undefined,
  open: () => Promise.reject(new Error('there is none')),
};
const registered = [...drivers, metal] as const;
const schema = configSchemaFor(registered);

const folder = mkdtempSync(join(tmpdir(), 'berth-platforms-'));
afterAll(() => rmSync(folder, { recursive: true }));
const configFile = join(folder, 'berth.yaml');
const catalogFile = join(folder, 'catalog.yaml');

const offer = (id: string, region: string, more = '') => `  - id: ${id}
    name: ${id}
    instance_type: DEDICATED
    vcpus: 4
    memory_gb: 16
    storage_gb: 80
    price_per_hour: 0.1
    os_options: [ubuntu-24.04]
    supports_cloud_init: true
    capacity: { ${region}: 3 }
${more}`;
const volumeTypes = (more = '') =>
  `[{ name: nvme, price_per_gb_hour: 0.0001, min_size_gb: 10, max_size_gb: 100${more} }]`;
const regions = (types: string) => `regions:
  east: { name: East, datacenter: dc-1, volume_types: ${types} }
  west: { name: West, datacenter: dc-2 }
`;
const SEVERAL = 'platforms: { cloud: { driver: simulator }, metal: { driver: metal, rack: r1 } }\n';
const onCloud = '    platform: cloud\n';
const onMetal = '    platform: metal\n    machine: { host_group: gpus }\n';

function write(platforms: string, catalog: string): void {
  writeFileSync(configFile, `catalog: catalog.yaml\n${platforms}`);
  writeFileSync(catalogFile, catalog);
}

function check(platforms: string, catalog: string): string[] {
  write(platforms, catalog);
  return checkConfig(configFile, schema, registered).map(toLine);
}

describe('platforms', () => {
  it('are one unnamed platform or several named ones', () => {
    const names = (text: string) => {
      write(text, '');
      const { config } = loadConfigAs(schema, { file: configFile, flags: {}, env: {} });
      return [...platformsOf(config)].map(([name, { driver }]) => `${name}: ${driver}`);
    };
    expect(names('')).toEqual(['default: simulator']);
    expect(names('platform: { driver: metal, rack: r1 }\n')).toEqual(['default: metal']);
    expect(names(SEVERAL)).toEqual(['cloud: simulator', 'metal: metal']);
    expect(names('platforms: { here: {} }\n')).toEqual(['here: simulator']);
  });

  it.each([
    ['both keys', `platform: {}\n${SEVERAL}`, '3:1 platforms: expected either platform or platforms'],
    ['no platform', 'platforms: {}\n', '2:12 platforms: expected at least one platform'],
    ['a name that is no name', 'platforms: { Ü: {} }\n', '2:14 platforms'],
    [
      'an option of one that is wrong',
      'platforms: { a: {}, b: { driver: metal } }\n',
      '2:21 platforms.b.rack is required',
    ],
  ])('are refused with the line of %s', (_what, platforms, finding) => {
    const [line, ...others] = check(platforms, `${regions('[]')}offers:\n${offer('a', 'east')}`);
    expect(line).toContain(`${configFile}:${finding}`);
    expect(others).toEqual([]);
  });
});

describe('a catalog of several platforms', () => {
  const both = `offers:\n${offer('vm', 'east', onCloud)}${offer('metal', 'west', onMetal)}`;

  it('is valid if each offer names its platform, and volumes follow the offers of their region', () => {
    expect(check(SEVERAL, regions(volumeTypes()) + both)).toEqual([]);
    const { config } = loadConfigAs(schema, { file: configFile, flags: {}, env: {} });
    const catalog = loadCatalog(catalogFile, sellingPlatforms(config, registered));
    expect([...catalogOf(catalog, 'metal').offers.keys()]).toEqual(['metal']);
    expect(catalog.regions.get('east')?.volumeTypes[0]?.platform).toBe('cloud');
  });

  it.each([
    [
      'an unknown platform',
      SEVERAL,
      `${regions('[]')}offers:\n${offer('a', 'east', '    platform: cluod\n')}`,
      '15:15 offers[0].platform: unknown platform; expected one of: cloud, metal',
    ],
    [
      'an offer that names none of several',
      SEVERAL,
      `${regions('[]')}offers:\n${offer('a', 'east')}`,
      '5:5 offers[0].platform: missing: the configuration has several platforms; expected one of: cloud, metal',
    ],
    [
      'a platform where the only one has no name',
      '',
      `${regions('[]')}offers:\n${offer('a', 'east', onCloud)}`,
      '15:15 offers[0].platform: unknown platform; expected one of: default',
    ],
    [
      'a key under machine that the driver does not read',
      SEVERAL,
      regions('[]') +
        `offers:\n${offer('a', 'east', '    platform: metal\n    machine: { flavour: big }\n')}`,
      '16:16 offers[0].machine.flavour: unknown key',
    ],
    [
      'machine for a driver that reads nothing there',
      'platform: { driver: simulator }\n',
      `${regions('[]')}offers:\n${offer('a', 'east', '    machine: { flavour: big }\n')}`,
      '15:16 offers[0].machine.flavour: the driver simulator has no settings under machine; remove it',
    ],
    [
      'volumes of a region whose offers are of two platforms',
      SEVERAL,
      `${regions(volumeTypes())}offers:\n${offer('a', 'east', onCloud)}${offer('b', 'east', onMetal)}`,
      '2:56 regions.east.volume_types[0].platform: missing: the offers of the region are on several platforms',
    ],
    [
      'volumes of an unknown platform',
      SEVERAL,
      `${regions(volumeTypes(', platform: tape'))}offers:\n${offer('a', 'east', onCloud)}`,
      'regions.east.volume_types[0].platform: unknown platform; expected one of: cloud, metal',
    ],
  ])('is refused with the line of %s', (_what, platforms, catalog, finding) => {
    const [line, ...others] = check(platforms, catalog);
    expect(line).toContain(catalogFile);
    expect(line).toContain(finding);
    expect(others).toEqual([]);
    const { config } = loadConfigAs(schema, { file: configFile, flags: {}, env: {} });
    expect(() => loadCatalog(catalogFile, sellingPlatforms(config, registered))).toThrow(finding);
  });
});
