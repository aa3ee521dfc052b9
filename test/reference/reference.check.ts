import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { checkConfig } from '../../src/config/check.ts';
import { protocolJsonSchema } from '../../src/drivers/exec/protocol/json-schema.ts';
import { drivers } from '../../src/drivers/registry.ts';
import {
  alarmKinds as marketAlarmKinds,
  alarmKindFacts as marketKindFacts,
} from '../../src/marketplace/model/alarm.ts';
import { alarmKindFacts, alarmKinds } from '../../src/orchestrator/model/alarm.ts';
import { rules as verdictRules } from '../../src/sandbox/verdict/rules.ts';
import { blocksOf, root } from '../documents/pages.ts';
import { configSchemas, placesOf } from './config-schemas.ts';
import { readPublished } from './published.ts';

const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const { orchestrator, marketplace } = (await readPublished()).metrics;
const metrics = [...orchestrator, ...marketplace];
const ajv = addFormats.default(new Ajv2020.default({ strict: false }));
const validators = new Map(configSchemas().map(({ name, schema }) => [name, ajv.compile(schema)]));
const faultsOf = (name: string, value: unknown): unknown[] => {
  const validate = validators.get(name);
  validate?.(value);
  return validate?.errors ?? [];
};

describe('the JSON Schemas', () => {
  it.each([
    ['berth', 'examples/berth.yaml'],
    ['berth', 'examples/libvirt/berth.yaml'],
    ['catalog', 'fixtures/catalogs/halyard.yaml'],
    ['marketplace', 'examples/marketplace.yaml'],
    ['profile', 'fixtures/providers/provider-a.yaml'],
  ])('that of %s takes %s, and no unknown key', (name, file) => {
    const example = parse(read(file));
    expect(faultsOf(name, example)).toEqual([]);
    expect(faultsOf(name, { ...example, unknown_key: 1 })).toHaveLength(1);
  });

  it('that of berth.yaml knows the keys of each driver, also of several platforms', () => {
    const { platform } = parse(read('examples/libvirt/berth.yaml'));
    const other = { driver: 'simulator' };
    expect(faultsOf('berth', { platforms: { kvm: platform, default: other } })).toEqual([]);
    expect(faultsOf('berth', { platforms: { kvm: { ...platform, bogus: 1 } } })).not.toEqual([]);
    expect(faultsOf('berth', { platform: { driver: 'simulator', hosts: [] } })).not.toEqual([]);
    expect(faultsOf('berth', { platform: { address: 2 } })).not.toEqual([]);
  });

  it.each(['catalog', 'profile'])('every key of the %s has a description', (wanted) => {
    const { schema } = configSchemas().find(({ name }) => name === wanted) ?? { schema: {} };
    const places = placesOf(schema);
    expect(places.length).toBeGreaterThan(35);
    expect(places.filter(({ schema: { description } }) => description === undefined)).toEqual([]);
  });

  it('the protocol of drivers is a valid one', () => {
    expect(ajv.validateSchema(protocolJsonSchema())).toBe(true);
  });
});

it.each(['incus', 'libvirt', 'openstack'])(
  'the configurations of docs/how-to/%s.md have no findings',
  (page) => {
    const [first = '', ...blocks] = blocksOf('yaml', read(`docs/how-to/${page}.md`)).filter(
      (one) => !/^clouds:/m.test(one),
    );
    const folder = mkdtempSync(join(tmpdir(), 'how-to-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const catalog = blocks.find((one) => /^offers:/m.test(one));
    if (catalog !== undefined) writeFileSync(join(folder, 'catalog.yaml'), catalog);
    const file = join(folder, 'berth.yaml');
    const { platform, ...others } = parse(first);
    // A block without its first line replaces keys of the platform.
    const changes = blocks
      .filter((one) => one.startsWith(' '))
      .map((one) => parse(`platform:\n${one}`).platform);
    for (const change of [{}, ...changes]) {
      writeFileSync(file, JSON.stringify({ ...others, platform: { ...platform, ...change } }));
      expect(checkConfig(file)).toEqual([]);
    }
    expect(page === 'libvirt' || catalog !== undefined).toBe(true);
  },
);

it.each(drivers)('docs/drivers.md names pages and tests of $name that exist', ({ about }) => {
  const { provedBy, guide, traps } = about;
  expect([provedBy.length, traps.length]).not.toContain(0);
  expect([...provedBy, `docs/${guide}`].filter((file) => !existsSync(join(root, file)))).toEqual([]);
});

it('docs/how-to/sandbox.md lists each rule of a verdict', () => {
  const listed = [...read('docs/how-to/sandbox.md').matchAll(/^\| `([a-z0-9-]+)` \|/gm)].map(([, id]) => id);
  expect(listed).toEqual(verdictRules.map(({ id }) => id));
});

describe('docs/operations', () => {
  const rules: { alert: string; expr: string; annotations: { runbook: string } }[] = parse(
    read('docs/operations/alerts.yaml'),
  ).groups.flatMap((group: { rules: [] }) => group.rules);
  const panels: { targets: { expr: string }[] }[] = JSON.parse(read('docs/operations/dashboard.json')).panels;
  const runbook = read('docs/runbook.md');

  it('alerts and dashboard name only figures and labels that there are', () => {
    const known = new Map(metrics.map(({ name, labels }) => [name, labels]));
    const expressions = [...rules, ...panels.flatMap(({ targets }) => targets)].map(({ expr }) => expr);
    expect(expressions.length).toBeGreaterThan(20);
    const isKnown = (expression: string): boolean => {
      const [name = 'up'] = /berth_[a-z_]+/.exec(expression.replaceAll(/_bucket\b/g, '')) ?? [];
      const labels = name === 'up' ? [] : known.get(name);
      const used = (/by \(([a-z, ]+)\)/.exec(expression)?.[1] ?? '').split(', ').filter(Boolean);
      return labels !== undefined && used.every((label) => ['le', 'instance', ...labels].includes(label));
    };
    expect(expressions.filter((expression) => !isKnown(expression))).toEqual([]);
    expect(['berth_nothing', 'sum by (shoe) (up)'].filter(isKnown)).toEqual([]);
  });

  it('a rule about a figure that counts time fires when its time is over, not some minutes later', () => {
    // How far two clocks are apart is a length that does not grow by itself.
    const times = metrics.filter(
      ({ name, type }) => type === 'gauge' && name.endsWith('_seconds') && !name.endsWith('_offset_seconds'),
    );
    const about = rules.filter(({ expr }) => times.some(({ name }) => expr.includes(name)));
    expect(about.length).toBeGreaterThan(8);
    expect(about.filter((rule) => 'for' in rule)).toEqual([]);
  });

  it('the runbook has each alarm, and a section for each alert', () => {
    const named = [...runbook.matchAll(/^\| (`[a-z_` ]+`) \|/gm)].flatMap(
      ([, kinds = '']) => kinds.match(/[a-z_]+/g) ?? [],
    );
    expect(named.toSorted()).toEqual([...new Set([...alarmKinds, ...marketAlarmKinds])].toSorted());
    const sections = [...runbook.matchAll(/^## (.+)$/gm)].map(
      ([, heading = '']) =>
        `runbook.md#${heading
          .toLowerCase()
          .replace(/[^a-z0-9 -]/g, '')
          .replaceAll(' ', '-')}`,
    );
    const lost = rules.filter(({ annotations }) => !sections.includes(annotations.runbook));
    expect(lost.map(({ alert }) => alert)).toEqual([]);
    const facts = [...Object.values(alarmKindFacts), ...Object.values(marketKindFacts)];
    const unknown = facts.filter((one) => !sections.includes(`runbook.md#${one.runbook}`));
    expect(unknown).toEqual([]);
  });
});
