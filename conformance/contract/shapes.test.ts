import { describe, expect, it } from 'vitest';
import { shapeProblems } from './shapes.ts';

const offer = {
  id: 'a',
  name: 'A',
  instance_type: 'SPOT',
  vcpus: 2,
  memory_gb: 4,
  storage_gb: 40,
  price_per_hour: 0.02,
  available: true,
  regions: ['eu-north'],
  supports_cloud_init: false,
};

const instance = {
  id: 'i-1',
  configuration_id: 'a',
  region: 'eu-north',
  status: 'ONLINE',
  created_at: '2026-01-01T12:00:00Z',
  updated_at: '2026-01-01T12:00:00Z',
};

describe('an offer', () => {
  it.each([
    ['as it is', {}],
    ['with regions in capitals and underscores', { regions: ['US_EAST.1'] }],
    ['without any region', { regions: [] }],
    ['with fields that the contract does not name', { x_vendor: null, sku: 7 }],
    ['with a free-form extras', { extras: { rack: ['a', 1, null] } }],
    ['with sizes that are odd numbers', { memory_gb: 0.5, vcpus: 4.0, price_per_hour: 0 }],
    ['with an empty name', { name: '' }],
  ])('%s is lawful', (_what, fields) => {
    expect(shapeProblems('Configuration', { ...offer, ...fields })).toEqual([]);
  });

  it.each([
    [{ memory_gb: '4' }, 'memory_gb', 'is "4", not a number', 'type', true],
    [{ vcpus: 2.5 }, 'vcpus', 'is 2.5, not an integer', 'type', true],
    [{ regions: [1] }, 'regions[0]', 'is 1, not a string', 'type', true],
    [{ supports_cloud_init: undefined }, 'supports_cloud_init', 'is missing', 'missing', true],
    [{ id: '' }, 'id', 'is empty', 'type', true],
    [
      { instance_type: 'spot' },
      'instance_type',
      'is "spot", not one of SPOT, DEDICATED, BARE_METAL, CLUSTER',
      'value',
      true,
    ],
    [{ description: null }, 'description', 'is null, not a string', 'null', false],
    [{ name: null }, 'name', 'is null, not a string', 'type', true],
    [{ os_options: [null] }, 'os_options[0]', 'is null, not a string', 'type', false],
    [{ extras: [] }, 'extras', 'is [], not an object', 'type', false],
  ])('with %j has a problem at %s', (fields, path, problem, fault, isRequired) => {
    const broken = JSON.parse(JSON.stringify({ ...offer, ...fields }));
    expect(shapeProblems('Configuration', broken)).toEqual([
      { field: path.replace(/\[.*/, ''), path, problem, fault, isRequired },
    ]);
  });

  it.each([[null], ['a'], [[]], [undefined]])('that is %j is none', (value) => {
    expect(shapeProblems('Configuration', value)).toMatchObject([{ field: '', path: '', isRequired: true }]);
  });

  it('reports a hostile number of problems in bounded time and length', () => {
    const regions = Array.from({ length: 100_000 }, () => ({ a: '\u001b[31m'.repeat(100) }));
    const problems = shapeProblems('Configuration', { ...offer, regions });
    expect(problems).toHaveLength(20);
    expect(problems[0]?.problem.length).toBeLessThan(150);
    expect(problems[0]?.problem).not.toContain('\u001b');
  });
});

describe('an instance', () => {
  it('says in which optional field a part of a port forward is missing', () => {
    expect(shapeProblems('Instance', { ...instance, port_forwards: [{ internal_port: 22 }] })).toEqual([
      {
        field: 'port_forwards',
        path: 'port_forwards[0].external_port',
        problem: 'is missing',
        fault: 'missing',
        isRequired: false,
      },
    ]);
  });

  it('is not held to limits that the tables do not have', () => {
    const unusual = { ...instance, ssh_port: 0, price_per_hour: -1, error: '', created_at: 'yesterday' };
    expect(shapeProblems('Instance', unusual)).toEqual([]);
  });
});
