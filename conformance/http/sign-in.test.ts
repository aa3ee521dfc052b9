import { expect, it } from 'vitest';
import type { Exchange } from '../transcript/records.ts';
import { AccessToken, lastUseOf } from './sign-in.ts';

const answering = (sentAt: number, body: unknown, status = 200): Exchange => ({
  kind: 'exchange',
  n: 1,
  step: 'token/good',
  sentAt,
  endedAt: sentAt + 20,
  wall: '2026-01-01T12:00:00Z',
  requestId: 'r',
  credential: 'none',
  request: { method: 'POST', path: '/auth/token', headers: {} },
  answer: { status, headers: {}, body: JSON.stringify(body), firstByteMs: 20 },
});

it('is due after three quarters of its life, counted from its request', () => {
  const token = AccessToken.of(answering(1_000, { access_token: 'a', expires_in: 100 }));
  expect(token?.isDue(75_999)).toBe(false);
  expect(token?.isDue(76_000)).toBe(true);
});

it.each([[{}], [{ expires_in: '100' }], [{ expires_in: 0 }], [{ expires_in: -5 }]])(
  'is never due where its life is not known: %j',
  (fields) => {
    const token = AccessToken.of(answering(0, { access_token: 'a', ...fields }));
    expect(token?.value).toBe('a');
    expect(token?.isDue(Number.MAX_SAFE_INTEGER)).toBe(false);
  },
);

it.each([
  [{ access_token: '' }, 200],
  [{ token: 'a' }, 200],
  [{ access_token: 'a' }, 401],
  ['a', 200],
])('is not in %j with status %i', (body, status) => {
  expect(AccessToken.of(answering(0, body, status))).toBeUndefined();
});

it('becomes the next one, and is kept for a while where there is no next one', () => {
  const token = AccessToken.of(answering(0, { access_token: 'a', expires_in: 100 }));
  token?.renew(answering(75_000, { error: {} }, 500));
  expect(token?.value).toBe('a');
  expect(token?.isDue(80_019)).toBe(false);
  expect(token?.isDue(80_020)).toBe(true);
  token?.renew(answering(81_000, { access_token: 'b', expires_in: 100 }));
  expect(token?.value).toBe('b');
  expect(token?.isDue(155_999)).toBe(false);
});

it('is used once more before its end, at the latest two seconds before it', () => {
  expect(lastUseOf(answering(1_000, { access_token: 'a', expires_in: 100 }))).toEqual({
    from: 81_000,
    until: 98_000,
  });
  expect(lastUseOf(answering(0, { access_token: 'a', expires_in: 20 }))).toEqual({
    from: 16_000,
    until: 18_000,
  });
  expect(lastUseOf(answering(0, { access_token: 'a' }))).toBeUndefined();
});
