import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { checkConfig } from './check.ts';
import { toLine } from './findings.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-check-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The findings as lines, the folder left out. */
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
      'berth.yaml:2:3 server.tls.key: missing: expected string',
    ],
    ['an empty section', 'limits:\nlog: {}\n', 'berth.yaml:1:8 limits: expected object, got null'],
    [
      'a range upside down',
      'platform:\n  boot_ms: [9, 1]\n',
      'berth.yaml:2:12 platform.boot_ms: expected [min, max] with min <= max',
    ],
    [
      'one of several types',
      'platform: { seed: {} }\n',
      'berth.yaml:1:19 platform.seed: expected number, got object, or expected string, got object',
    ],
    [
      'another driver',
      'platform: { driver: vmware }\n',
      'berth.yaml:1:21 platform.driver: expected "simulator"',
    ],
    [
      'a rate below the least of the contract',
      'rate_limits:\n  polls_per_instance: { per_second: 0.05 }\n',
      'berth.yaml:2:37 rate_limits.polls_per_instance.per_second: expected number to be >=0.1',
    ],
    [
      'an unknown policy',
      'reconcile:\n  orphans: kill\n',
      'berth.yaml:2:12 reconcile.orphans: expected one of "log"|"stop"|"reap"',
    ],
    [
      'a lease of no time',
      'reconcile:\n  lease_s: 0\n',
      'berth.yaml:2:12 reconcile.lease_s: expected number to be >=1',
    ],
    [
      'a TLS file that is not there',
      'server:\n  tls:\n    cert: none.pem\n    key: /dev/null\n',
      'berth.yaml:3:11 server.tls.cert: expected a file that can be read',
    ],
    ['a catalog that is not there', 'catalog: none.yaml\n', 'none.yaml: there is no such file'],
    ['a catalog that is no path', 'catalog: [a]\n', 'berth.yaml:1:10 catalog: expected string, got array'],
    ['no YAML', 'a: [\n', expect.stringMatching(/^berth.yaml:\d:\d: Flow sequence/)],
  ])('finds %s, at its line', (_what, config, line) => {
    expect(check(config)).toEqual([line]);
  });

  it('goes on after the first finding, and into the catalog', () => {
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

  it('says of a file that cannot be read that it cannot', () => {
    expect(checkConfig(folder).map(toLine)).toEqual([`${folder}: expected a YAML file, this is a directory`]);
  });
});
