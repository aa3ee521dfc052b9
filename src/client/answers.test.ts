import { expect, it } from 'vitest';
import { instanceAnswerSchema, isUsableId } from './answers.ts';

it.each([
  ...['i-1', 'urn:vm:7/ä', '../a?b', 'x'.repeat(255)].map((id) => [id, true] as const),
  ...['', '.', '..', 'i\u0000', 'i-1\r\nSet-Cookie: x', 'i\ud800', 'x'.repeat(256)].map(
    (id) => [id, false] as const,
  ),
])('%j is an id that can be stored, logged and put into a path: %s', (id, isUsable) => {
  expect(isUsableId(id)).toBe(isUsable);
});

it('a time in lower case is read as in upper case', () => {
  const times = { created_at: '2026-11-21T00:00:00Z', updated_at: '2026-11-21t00:00:00.5z' };
  const answer = { id: 'i-1', configuration_id: 'gpu-1', region: 'eu-1', status: 'ONLINE', ...times };
  expect(instanceAnswerSchema.parse(answer).updated_at).toBe('2026-11-21T00:00:00.5Z');
});
