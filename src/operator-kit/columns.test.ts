import { expect, it } from 'vitest';
import { kindOfValue, linkOfId, shortSpan, titleOf } from './columns.ts';

const S = 1_000;
const M = 60 * S;
const H = 60 * M;
const D = 24 * H;

it.each([
  [0, '0s'],
  [45 * S, '45s'],
  [3 * M + 20 * S, '3m20s'],
  [3 * M, '3m'],
  [12 * M + 59 * S, '12m'],
  [5 * H + 10 * M, '5h10m'],
  [2 * D + 4 * H, '2d4h'],
  [12 * D + 4 * H, '12d'],
  [400 * D, '1y35d'],
])('%d ms are shown as %s', (ms, text) => {
  expect(shortSpan(ms)).toBe(text);
});

it.each([
  ['created_at', '2030-01-01T00:00:00.000Z', 'time'],
  ['at', '2030-01-01T00:00:00Z', 'moment'],
  ['name', '2030-01-01T00:00:00Z', 'name'],
  ['status', 'ONLINE', 'state'],
  ['balance_usd', 1.5, 'money'],
  ['units', 2, 'count'],
  ['has_password', false, 'flag'],
  ['owner_ref', 'berth-inst-1', 'code'],
  ['instances', { ONLINE: 1 }, 'data'],
  ['offer', 'h100-1x', 'text'],
] as const)('%s %j is shown as a %s, unless its column says otherwise', (field, value, kind) => {
  expect(kindOfValue({ field }, value)).toBe(kind);
  expect(kindOfValue({ field, kind: 'id' }, value)).toBe('id');
});

it.each([
  ['inst-0a', '/instances/inst-0a'],
  ['team-a/b', '/teams/team-a%2Fb'],
  ['inst', undefined],
  ['vol-1', undefined],
  [null, undefined],
])('the page of %j is %s', (id, page) => {
  expect(linkOfId(id)).toBe(page);
});

it.each([
  [{ field: 'last_used_at' }, 'Last used'],
  [{ field: 'usd_per_hour' }, 'USD per hour'],
  [{ field: 'attempt', title: 'try' }, 'Try'],
  [{ field: 'vcpus', title: 'vCPU' }, 'vCPU'],
])('%j has a title', (column, title) => {
  expect(titleOf(column)).toBe(title);
});
