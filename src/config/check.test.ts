import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createCertificates } from '../compose/sandbox/certificates.ts';
import { checkConfig, configNotes } from './check.ts';
import { toLine } from './findings.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-check-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Returns the findings as lines, without the folder. */
function check(config: string, catalog?: string): string[] {
  writeFileSync(join(folder, 'berth.yaml'), config);
  if (catalog !== undefined) writeFileSync(join(folder, 'catalog.yaml'), catalog);
  return checkConfig(join(folder, 'berth.yaml')).map((finding) =>
    toLine(finding).replaceAll(`${folder}/`, ''),
  );
}

describe('check-config', () => {
  it('finds nothing in the bundled catalog, and nothing in an empty file', () => {
    expect(checkConfig(undefined)).toEqual([]);
    expect(check('')).toEqual([]);
  });

  it('prints a finding on one line, whatever the key contains', () => {
    expect(check('"a\\nforged: OK": 1\n')).toEqual([
      expect.stringMatching(/^berth\.yaml:1:1 a\\u000aforged: OK: unknown key/),
    ]);
  });

  it('notes locations that sell storage without a limit', () => {
    const region = (more: string) =>
      `{ name: X, datacenter: dc-${more.length}, volume_types: [{ name: ssd, price_per_gb_hour: 1, min_size_gb: 1, max_size_gb: 9 }]${more} }`;
    const offer =
      '{ id: a, name: A, instance_type: DEDICATED, vcpus: 1, memory_gb: 1, storage_gb: 1, price_per_hour: 1, os_options: [x], supports_cloud_init: true, capacity: { eu-one: 1 } }';
    const regions = `{ eu-one: ${region('')}, eu-two: ${region(', storage_capacity_gb: 50')}, eu-three: { name: Y, datacenter: dc-y } }`;
    expect(check('catalog: catalog.yaml', `regions: ${regions}\noffers: [${offer}]\n`)).toEqual([]);
    expect(configNotes(join(folder, 'berth.yaml'), {})).toEqual([
      `${join(folder, 'catalog.yaml')} regions.eu-one: no storage_capacity_gb, so its storage is sold without a limit`,
    ]);
    expect(configNotes(undefined, {})).toEqual([]);
  });

  it.each([
    [
      'the key of a provider',
      'providers:\n  - { id: a, base_url: "https://a.example/v1", profile: a.yaml, api_key_env: KEY_A }\n',
      '2:78 providers[0].api_key_env: the environment variable KEY_A is not set here; `berth marketplace` does not start without it',
    ],
    [
      'the password of the mail server',
      'providers: []\nmail:\n  smtp: { host: m, from: a@b.example, user: u, password_env: KEY_A }\n',
      '3:62 mail.smtp.password_env: the environment variable KEY_A is not set here; `berth marketplace` does not start without it',
    ],
    [
      'what a driver is given',
      'platforms:\n  east: { driver: exec, command: [./d], environment: [SET, KEY_A] }\n',
      '2:60 platforms.east.environment[1]: the environment variable KEY_A is not set here; `berth serve` does not start without it',
    ],
  ])('notes an environment variable that is not set, for %s', (_what, config, note) => {
    const file = join(folder, 'variables.yaml');
    writeFileSync(file, config);
    const env = { SET: 'x' };
    expect(configNotes(file, env).filter((line) => line.includes('KEY_A'))).toEqual([`${file}:${note}`]);
    expect(configNotes(file, { ...env, KEY_A: 'x' }).join()).not.toContain('KEY_A');
  });

  it('reports storage in a region without volumes', () => {
    const text = 'regions:\n  eu-one: { name: Y, datacenter: dc-y, storage_capacity_gb: 5 }\noffers: []\n';
    expect(check('catalog: catalog.yaml', text).join()).toContain(
      'regions.eu-one.storage_capacity_gb: expected volume_types as well',
    );
  });

  it.each([
    [
      'an unknown key',
      '# a\nserver:\n  prot: 1\n',
      'berth.yaml:3:3 server.prot: unknown key; remove it or correct its spelling',
    ],
    [
      'an unknown section',
      'servers: {}\n',
      'berth.yaml:1:1 servers: unknown key; remove it or correct its spelling',
    ],
    [
      'a wrong type',
      'server:\n  port: "80"\n',
      'berth.yaml:2:9 server.port: expected a whole number from 0 to 65535',
    ],
    [
      'a missing key',
      'server:\n  tls:\n    cert: /dev/null\n',
      'berth.yaml:2:3 server.tls.key is required: a string',
    ],
    ['an empty section', 'limits:\nlog: {}\n', 'berth.yaml:1:8 limits: expected an object, got null'],
    [
      'an address without a protocol',
      'platform:\n  address: https\n',
      'berth.yaml:2:12 platform.address: expected an address such as http://127.0.0.1:8090',
    ],
    [
      'one of several types',
      'platform: { driver: incus, address: {} }\n',
      'berth.yaml:1:37 platform.address: expected a string, or a list',
    ],
    [
      'another driver',
      'platform: { driver: vmware }\n',
      expect.stringMatching(/^berth.yaml:1:21 platform.driver: expected one of "simulator", /),
    ],
    [
      'a rate below the least of the contract',
      'rate_limits:\n  requests_per_account: { per_second: 0.05 }\n',
      'berth.yaml:2:39 rate_limits.requests_per_account.per_second: expected at least 1',
    ],
    [
      'a TLS file that is not there',
      'server:\n  tls:\n    cert: none.pem\n    key: /dev/null\n',
      'berth.yaml:3:11 server.tls.cert: expected a file that can be read',
    ],
    [
      'TLS files that are none',
      'server:\n  tls:\n    cert: /dev/null\n    key: /dev/null\n',
      expect.stringMatching(/^berth.yaml:2:3 server.tls: the certificate and its key do not match, or/),
    ],
    ['a catalog that is not there', 'catalog: none.yaml\n', 'none.yaml: there is no such file'],
    ['a catalog that is no path', 'catalog: [a]\n', 'berth.yaml:1:10 catalog: expected a string, got a list'],
    ['no YAML', 'a: [\n', 'berth.yaml:1:4: this [ is never closed, or its ] is indented too little'],
  ])('finds %s, at its line', (_what, config, line) => {
    expect(check(config)).toEqual([line]);
  });

  it('reports a certificate whose key does not match, as serve does', () => {
    const [one, other] = [createCertificates([], 0).valid, createCertificates([], 0).valid];
    writeFileSync(join(folder, 'cert.pem'), one.cert);
    const config = 'server: { tls: { cert: cert.pem, key: key.pem } }\n';
    for (const [key, findings] of [
      [one.key, []],
      [other.key, [expect.stringContaining('do not match')]],
    ] as const) {
      writeFileSync(join(folder, 'key.pem'), key);
      expect(check(config)).toEqual(findings);
    }
  });

  it('continues after the first finding, and checks the catalog', () => {
    const catalog = ['regions:', '  eu-a: { name: A, datacenter: dc-a, colour: red }', 'offers: []', ''].join(
      '\n',
    );
    expect(check('catalog: catalog.yaml\nlog:\n  level: loud\n  colour: red\n', catalog)).toEqual([
      expect.stringMatching(/^berth.yaml:3:10 log.level: /),
      expect.stringMatching(/^berth.yaml:4:3 log.colour: unknown key/),
      expect.stringMatching(/^catalog.yaml:2:38 regions.eu-a.colour: unknown key/),
      'catalog.yaml:3:9 offers: expected at least one offer',
    ]);
  });

  it('reports a file that cannot be read', () => {
    expect(checkConfig(folder).map(toLine)).toEqual([`${folder}: expected a YAML file, got a directory`]);
  });
});
