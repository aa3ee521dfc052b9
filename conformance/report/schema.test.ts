import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect, it } from 'vitest';
import { toJson } from './model.ts';
import { greenReport, reportOf, sampleReport, sampleRun } from './sample.fixture.ts';

const askedReport = reportOf([
  sampleRun({ nonce: 'market-1', isChained: true }),
  {
    kind: 'exchange',
    n: 1,
    step: 'list/all',
    sentAt: 1,
    endedAt: 2,
    wall: '2026-03-02T09:30:00.001Z',
    requestId: 'r',
    tlsKey: 'e3'.repeat(32),
    credential: 'api key',
    request: { method: 'GET', path: '/instances', headers: {} },
  },
]);

const schema: object = JSON.parse(readFileSync(join(import.meta.dirname, 'schema.json'), 'utf8'));
const ajv = new Ajv2020({ strict: true, allErrors: true });
addFormats.default(ajv);
const validate = ajv.compile(schema);

function errorsOf(report: unknown): unknown {
  return validate(report) ? [] : validate.errors;
}

it.each([
  ['of every verdict', sampleReport],
  ['of a run in which all went well', greenReport],
  ['of a run that was cut off', reportOf([sampleRun({ only: ['INS-404-001'], roundTripsMs: [] })])],
  [
    'of a run with every setting',
    reportOf([
      sampleRun({
        settings: {
          pollIntervalMs: 200,
          readyTimeoutMs: 1000,
          maxCostUsd: 2,
          maxMinutes: 5,
          hasSecondKey: true,
          offer: 'a',
          region: 'b',
          race: { offer: 'a', units: 2 },
        },
      }),
      { kind: 'end', at: 1, reason: 'fault of the suite', detail: 'why' },
    ]),
  ],
  ['of a run for a nonce', askedReport],
])('a report %s is as the schema says', (_, report) => {
  expect(errorsOf(JSON.parse(toJson(report)))).toEqual([]);
});

type Json = { [name: string]: unknown };

/** The objects of the report whose fields the schema lists, by path. */
function objectsIn(value: unknown, path = ''): [string, Json][] {
  if (Array.isArray(value)) return value.flatMap((item, index) => objectsIn(item, `${path}/${index}`));
  if (typeof value !== 'object' || value === null) return [];
  const inner = Object.entries(value).flatMap(([name, item]) => objectsIn(item, `${path}/${name}`));
  return path.endsWith('_headers') ? inner : [[path, value as Json], ...inner];
}

it('refuses a field that it does not know, in each object', () => {
  const report: unknown = JSON.parse(toJson(sampleReport));
  const objects = objectsIn(report);
  expect(objects.length).toBeGreaterThan(100);
  const kinds = new Map(objects.map(([path, object]) => [path.replaceAll(/\d+/g, 'n'), object]));
  const accepted = [...kinds].filter(([, object]) => {
    object['unknown_field'] = 'x';
    const isValid = validate(report);
    delete object['unknown_field'];
    return isValid;
  });
  expect(accepted.map(([path]) => path)).toEqual([]);
  expect(errorsOf(report)).toEqual([]);
});

it.each(['outcome', 'why', 'checks', 'leftovers', 'exit_code'])('refuses a report without %s', (name) => {
  const report = JSON.parse(toJson(sampleReport)) as Json;
  delete report[name];
  expect(validate(report)).toBe(false);
});
