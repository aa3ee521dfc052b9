import { describe, expect, it } from 'vitest';
import type { Exchange } from '../transcript/records.ts';
import { regionFault } from './catalog/regions.ts';
import { messageFault } from './conventions/errors.ts';
import { isUtcTimestamp } from './conventions/timestamps.ts';
import { CHECKS } from './index.ts';
import { type Answer, judged, offers, recorded } from './read-only.fixture.ts';

describe('a check that saw nothing', () => {
  const own = /^(WIRE|ERR|REG|CFG|AVL|AUTH|TOK|INS-LIST|INS-FIELD)-/;
  it.each(CHECKS.filter(({ id }) => own.test(id)).map(({ id }) => id))('%s does not pass', (id) => {
    expect(judged(id, []).verdict).toMatch(/^not_/);
  });

  it.each([
    'AVL-TRUE-001',
    'AVL-SUBSET-001',
    'AVL-REGION-001',
    'CFG-FIELD-001',
    'CFG-PRICE-001',
    'REG-TOKEN-001',
  ])('%s does not pass on empty lists', (id) => {
    const records = recorded(
      ['catalog/configurations', '/configurations', offers()],
      ['catalog/availability', '/availability', offers()],
      ['catalog/of-region', '/availability?region=eu-north', offers()],
    );
    expect(judged(id, records).verdict).toMatch(/^not_/);
  });
});

describe('AVL-AGREE-001', () => {
  const pair = (configurations: Answer, availability: Answer): [string, string, Answer][] => [
    ['catalog/configurations', '/configurations', configurations],
    ['catalog/availability', '/availability', availability],
  ];

  it('takes a difference that is not there each time for a sale', () => {
    const agreeing = pair(offers('a'), offers('a'));
    const records = recorded(...pair(offers('a'), offers()), ...agreeing, ...pair(offers('a'), offers()));
    expect(judged('AVL-AGREE-001', records).verdict).toBe('pass');
  });

  it('reports each difference and the number of reads that showed it', () => {
    const differing = pair(offers('a', 'b'), offers('b'));
    expect(judged('AVL-AGREE-001', recorded(...differing, ...differing))).toMatchObject({
      verdict: 'fail',
      of: 2,
      problems: [
        {
          actual: 'offer "a" has available true and is not in /availability, in 2 of 2 pairs of reads',
        },
      ],
    });
  });

  it('needs more than one pair', () => {
    expect(judged('AVL-AGREE-001', recorded(...pair(offers('a'), offers()))).verdict).toBe('not_tested');
  });
});

describe('WIRE-REACH-001', () => {
  it('counts what was answered at a later try as answered', () => {
    const [lost, answeredExchanges] = recorded(
      ['catalog/availability', '/availability'],
      ['catalog/availability', '/availability', offers()],
    );
    const records = [{ ...(lost as Exchange), superseded: true as const }, answeredExchanges as Exchange];
    expect(judged('WIRE-REACH-001', records).verdict).toBe('pass');
  });

  it('says how often it was tried', () => {
    const lost: [string, string] = ['catalog/availability', '/availability'];
    const records = recorded(['catalog/configurations', '/configurations', offers()], lost, lost, lost);
    const tries = records.map((record, index) =>
      index === 1 || index === 2 ? { ...record, superseded: true as const } : record,
    );
    expect(judged('WIRE-REACH-001', tries)).toMatchObject({
      problems: [{ actual: 'none to GET /availability, tried 3 times: no answer within 30000 ms' }],
    });
  });

  it('says nothing of a target that answered nothing', () => {
    const records = recorded(['catalog/configurations', '/configurations']);
    expect(judged('WIRE-REACH-001', records).verdict).toBe('not_tested');
  });
});

describe('WIRE-HTTPS-001', () => {
  it.each([
    ['https://provider.test/v1', 'pass'],
    ['http://provider.test/v1', 'fail'],
    ['http://127.0.0.1:8080/v1', 'not_applicable'],
    ['http://localhost:8080/v1', 'not_applicable'],
    ['http://[::1]:8080/v1', 'not_applicable'],
    ['http://localhost.provider.test/v1', 'fail'],
  ])('of %s is %s', (baseUrl, verdict) => {
    const records = recorded(['catalog/configurations', '/configurations', offers()]);
    expect(judged('WIRE-HTTPS-001', records, baseUrl).verdict).toBe(verdict);
  });
});

describe('WIRE-JSON-001', () => {
  it.each([
    [{ body: {}, headers: { 'content-type': 'application/json; charset=utf-8' } }, 'pass'],
    [{ body: {}, headers: { 'content-type': 'APPLICATION/JSON' } }, 'pass'],
    [{ status: 204, headers: {} }, 'pass'],
    [{ status: 401, headers: {} }, 'pass'],
    [{ body: {}, headers: { 'content-type': 'application/problem+json' } }, 'fail'],
    [{ body: {}, headers: { 'content-type': 'application/jsonp' } }, 'fail'],
    [{ body: {}, headers: {} }, 'fail'],
    [{ status: 204, body: {} }, 'fail'],
  ])('of %j is %s', (answer, verdict) => {
    expect(judged('WIRE-JSON-001', recorded(['catalog/x', '/x', answer])).verdict).toBe(verdict);
  });
});

it.each([
  ['2026-01-31T09:30:00Z', true],
  ['2026-01-31T09:30:00.123456Z', true],
  ['2026-01-31t09:30:00z', true],
  ['2026-01-31T09:30:00+00:00', true],
  ['2026-01-31T09:30:00+01:00', false],
  ['2026-01-31T09:30:00', false],
  ['2026-01-31 09:30:00Z', false],
  ['2026-13-31T09:30:00Z', false],
  ['2027-02-29T09:30:00Z', false],
  ['1769851800', false],
])('of %s it is %s that it is a timestamp in UTC', (text, isOne) => {
  expect(isUtcTimestamp(text)).toBe(isOne);
});

it.each([
  ['eu-frankfurt', true],
  ['US_EAST', true],
  ['fra1', true],
  ['DE', true],
  ['decade', true],
  ['são-paulo', true],
  ['New York', false],
  ['7', false],
  ['0f8fad5b-d9cb-469f-a165-70867728950e', false],
  ['a3f09b12cd', false],
  ['1-east', true],
  ['東京', true],
  ['1-2', false],
  ['', false],
])('of the region %j it is %s that it is a token for people', (region, isOne) => {
  expect(regionFault(region) === undefined).toBe(isOne);
});

it.each([
  ['The instance is ONLINE and cannot be started.', 'invalid_state', true],
  ['Unauthorized', 'Unauthorized', true],
  ['Nicht gefunden', 'not_found', true],
  ['memory must be < 4 GB', 'invalid_request', true],
  ['not_found', 'not_found', false],
  ['E1001', 'E1001', false],
  ['   ', 'x', false],
  ['<html><body>502 Bad Gateway</body></html>', 'x', false],
  ['Error: no\n    at parse (/srv/app.js:1:2)', 'x', false],
  ['Traceback (most recent call last):\n  File "a.py"', 'x', false],
])('of the message %j with code %s it is %s that it is for people', (message, code, isOne) => {
  expect(messageFault(message, code) === undefined).toBe(isOne);
});
