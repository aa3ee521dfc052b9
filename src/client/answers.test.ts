import { expect, it } from 'vitest';
import { instanceAnswerSchema } from './answers.ts';

const instance = {
  id: 'i-1',
  configuration_id: 'gpu-1',
  region: 'eu-1',
  status: 'ONLINE',
  created_at: '2026-11-21T00:00:00Z',
  updated_at: '2026-11-21t00:00:00.5z',
};

it('a time in lower case is read as in upper case', () => {
  expect(instanceAnswerSchema.parse(instance).updated_at).toBe('2026-11-21T00:00:00.5Z');
});

it.each(['i-1', 'urn:vm:7/ä', 'x'.repeat(255)])('an instance may have the id %s', (id) => {
  expect(instanceAnswerSchema.safeParse({ ...instance, id }).success).toBe(true);
});

it.each(['', 'i\u0000', 'i-1\r\nSet-Cookie: x', 'x'.repeat(256)])(
  'an id that could not be stored or written into a log is none: %j',
  (id) => {
    expect(instanceAnswerSchema.safeParse({ ...instance, id }).success).toBe(false);
  },
);
