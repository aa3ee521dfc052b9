import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { collectLog } from '../../test/support/doubles/log.ts';
import { VirtualClock } from '../../test/support/time/virtual-clock.ts';
import { checkConfig } from '../config/check.ts';
import { toLine } from '../config/findings.ts';
import { loadCatalog, loadConfigAs } from '../config/load.ts';
import { platformsOf } from '../config/platforms.ts';
import { configSchemaFor } from '../config/schema.ts';
import { Fatal } from '../ports/errors.ts';
import type { DriverDefinition, DriverSetting } from './kit/driver-definition.ts';
import { driverNamed, drivers } from './registry.ts';
import { simulator } from './simulator/driver.ts';

const hypervisorSchema = z.strictObject({
  driver: z.literal('hypervisor'),
  host: z.string().min(1),
  retries: z.int().max(9).default(3),
});
type HypervisorOptions = z.infer<typeof hypervisorSchema>;

/** A driver that exists only in this test. It opens a simulator. */
const hypervisor: DriverDefinition<HypervisorOptions> = {
  name: 'hypervisor',
  about: { provedOn: '', provedBy: [], traps: [], guide: '' },
  configSchema: hypervisorSchema,
  check: ({ host }) => {
    if (host === 'down') throw new Fatal('The hypervisor down cannot be used: name another.');
  },
  open: async (_options, setting) => {
    const driver = await simulator.open(simulator.configSchema.parse({ driver: 'simulator' }), setting);
    return { ...driver, manifest: { ...driver.manifest, name: 'hypervisor' } };
  },
};
const registered = [...drivers, hypervisor] as const;
const schema = configSchemaFor(registered);

const folder = mkdtempSync(join(tmpdir(), 'berth-registry-'));
afterAll(() => rmSync(folder, { recursive: true }));

function write(text: string): string {
  const file = join(folder, 'berth.yaml');
  writeFileSync(file, text);
  return file;
}
const load = (text: string) => loadConfigAs(schema, { file: write(text), flags: {}, env: {} }).config;

describe('a registered driver', () => {
  it('is chosen by its name, with its options', () => {
    const { platform } = load('platform: { driver: hypervisor, host: rack-1 }\n');
    expect(platform).toEqual({ driver: 'hypervisor', host: 'rack-1', retries: 3 });
  });

  it.each(['', 'platform: {}\n', 'platform: { driver: simulator }\n'])(
    'leaves a file that does not name it to the simulator: %j',
    (text) => {
      expect(load(text).platform).toMatchObject({ driver: 'simulator' });
    },
  );

  it.each([
    [
      'an option that is missing',
      'platform:\n  driver: hypervisor\n',
      '1:1 platform.host is required: a string',
    ],
    [
      'an option of another driver',
      'platform:\n  driver: hypervisor\n  host: rack-1\n  address: a\n',
      '4:3 platform.address: unknown key; remove it or correct its spelling',
    ],
    [
      'an option out of its range',
      'platform: { driver: hypervisor, host: rack-1, retries: 10 }\n',
      '1:56 platform.retries: expected at most 9',
    ],
    [
      'an option of it where the simulator is meant',
      'platform:\n  host: rack-1\n',
      '2:3 platform.host: unknown key; remove it or correct its spelling',
    ],
    [
      'a driver that is not registered',
      'platform: { driver: vmware }\n',
      `1:21 platform.driver: expected one of ${registered.map(({ name }) => JSON.stringify(name)).join(', ')}`,
    ],
    ['no options at all', 'platform: 5\n', '1:11 platform: expected an object, got a number'],
  ])('is refused with the line of %s', (_what, text, finding) => {
    expect(checkConfig(write(text), schema).map(toLine)).toEqual([
      `${join(folder, 'berth.yaml')}:${finding}`,
    ]);
    expect(() => load(text)).toThrow(finding);
  });

  it('is checked and opened with the configured options', async () => {
    const { catalog, ...config } = load('platform: { driver: hypervisor, host: rack-1 }\n');
    const [platform] = platformsOf(config).values();
    if (platform === undefined) throw new Error('it is not there');
    const setting: DriverSetting = {
      platform: 'default',
      catalog: loadCatalog(catalog),
      databaseFile: join(folder, 'berth.db'),
      env: {},
      clock: new VirtualClock(),
      log: collectLog().log,
    };
    const definition = driverNamed(platform.driver, registered);
    definition.check(platform, setting);
    expect(() => definition.check({ ...platform, host: 'down' } as typeof platform, setting)).toThrow(Fatal);
    const driver = await definition.open(platform, setting);
    expect(driver.manifest.name).toBe('hypervisor');
    expect(await driver.list()).toEqual({ answer: 'listed', items: [] });
    await driver.close();
  });
});

it('each driver has a unique name, which its schema requires', () => {
  expect(new Set(drivers.map(({ name }) => name)).size).toBe(drivers.length);
  for (const { name, configSchema } of drivers)
    expect(configSchema.safeParse({ driver: `not-${name}` }).success).toBe(false);
});
