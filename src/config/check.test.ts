import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
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

  it.each([
    ['server: { admin: { host: 0.0.0.0 } }\n', '1:26'],
    ['providers: []\nserver: { admin: { host: berth.internal } }\n', '2:26'],
  ])(
    'requires TLS of an admin listener beyond loopback, and says what to do: %j [admin-tls-required]',
    (text, at) => {
      expect(check(text)).toEqual([
        expect.stringMatching(
          new RegExp(
            `^berth\\.yaml:${at} server\\.admin\\.host: expected TLS.*: set server\\.admin\\.tls, or listen on 127`,
          ),
        ),
      ]);
      const tls = 'tls: { cert: a.crt, key: a.key }';
      expect(check(text.replace('admin: {', `admin: { ${tls},`))).toEqual([]);
      expect(check(text.replace(/host: [\w.]+/, 'host: "::1"'))).toEqual([]);
    },
  );
  it('names what is wrong with the routes of alarms, with its line', () => {
    const routes = (...lines: string[]) =>
      check(`alarms:\n  routes:\n${lines.map((line) => `  - ${line}\n`).join('')}`);
    const hook = 'webhook: { url: https://hooks.example.com/x }';
    expect(
      routes(`{ name: a, ${hook} }`, `{ name: b, slack: { url_env: HOOK }, kinds: [platform_down] }`),
    ).toEqual([]);
    const problems = routes(
      `{ name: a, ${hook}, kinds: [platform_up] }`,
      '{ name: a, email: { to: [ops@example.com] } }',
      '{ name: b, webhook: { url: http://hooks.example.com/x } }',
      '{ name: c, webhook: { url: https://10.0.0.1/x } }',
      `{ name: d, ${hook}, slack: { url_env: HOOK } }`,
      '{ name: e, webhook: {} }',
    );
    expect(problems).toEqual([
      expect.stringMatching(
        /^berth\.yaml:3:.*alarms\.routes\[0\]\.kinds\[0\].*expected one of "platform_down"/,
      ),
      expect.stringMatching(/^berth\.yaml:5:.*\.url: expected https: plain http needs allow_private/),
      expect.stringMatching(/^berth\.yaml:6:.*\.url: expected a public address: 10\.0\.0\.1/),
      expect.stringMatching(/^berth\.yaml:7:.*alarms\.routes\[4\].*expected one of webhook, slack and email/),
      expect.stringMatching(/^berth\.yaml:8:.*webhook.*expected one of url and url_env/),
    ]);
    expect(routes(`{ name: a, ${hook} }`, '{ name: a, email: { to: [ops@example.com] } }')).toEqual([
      expect.stringMatching(/^berth\.yaml:4:.*name: duplicate name a/),
      expect.stringMatching(/^berth\.yaml:4:.*email: expected a mail server under `mail`/),
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
      '2:78 providers[0].api_key_env: the environment variable KEY_A is not set here, nor KEY_A_FILE; the server does not start without it',
    ],
    [
      'the password of the mail server',
      'providers: []\nmail: { host: m, from: a@b.example, user: u, password_env: KEY_A }\n',
      '2:60 mail.password_env: the environment variable KEY_A is not set here, nor KEY_A_FILE; the server does not start without it',
    ],
    [
      'the webhook of a route of alarms',
      'alarms: { routes: [{ name: a, slack: { url_env: KEY_A } }] }\n',
      '1:49 alarms.routes[0].slack.url_env: the environment variable KEY_A is not set here, nor KEY_A_FILE; the server does not start without it',
    ],
    [
      'what a driver is given',
      'platforms:\n  east: { driver: exec, command: [./d], environment: [SET, KEY_A] }\n',
      '2:60 platforms.east.environment[1]: the environment variable KEY_A is not set here; the server does not start without it',
    ],
  ])('notes an environment variable that is not set, for %s', (_what, config, note) => {
    const file = join(folder, 'variables.yaml');
    writeFileSync(file, config);
    const about = (env: Record<string, string>) =>
      configNotes(file, { SET: 'x', ...env }).filter((line) => line.includes('KEY_A'));
    expect(about({})).toEqual([`${file}:${note}`]);
    expect(about({ KEY_A: 'x' })).toEqual([]);
    if (note.includes('KEY_A_FILE')) expect(about({ KEY_A_FILE: '/run/secrets/a' })).toEqual([]);
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
    ['an empty section', 'quotas:\nlog_level: info\n', 'berth.yaml:1:8 quotas: expected an object, got null'],
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
      'rate_limits:\n  requests_per_second: 0.05\n',
      'berth.yaml:2:24 rate_limits.requests_per_second: expected at least 1',
    ],
    ['a catalog that is not there', 'catalog: none.yaml\n', 'none.yaml: there is no such file'],
    ['a catalog that is no path', 'catalog: [a]\n', 'berth.yaml:1:10 catalog: expected a string, got a list'],
    [
      'no YAML',
      'a: [\n',
      'berth.yaml:2:1: a bracket before this place is never closed, or its ] is indented too little',
    ],
  ])('finds %s, at its line', (_what, config, line) => {
    expect(check(config)).toEqual([line]);
  });

  it('continues after the first finding, and checks the catalog', () => {
    const catalog = ['regions:', '  eu-a: { name: A, datacenter: dc-a, colour: red }', 'offers: []', ''].join(
      '\n',
    );
    expect(check('catalog: catalog.yaml\nlog_level: loud\ncolour: red\n', catalog)).toEqual([
      expect.stringMatching(/^berth.yaml:2:12 log_level: /),
      expect.stringMatching(/^berth.yaml:3:1 colour: unknown key/),
      expect.stringMatching(/^catalog.yaml:2:38 regions.eu-a.colour: unknown key/),
      'catalog.yaml:3:9 offers: expected at least one offer',
    ]);
  });

  it('reports a file that cannot be read', () => {
    expect(checkConfig(folder).map(toLine)).toEqual([`${folder}: expected a YAML file, got a directory`]);
  });
});
