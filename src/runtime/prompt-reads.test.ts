import { expect, it } from 'vitest';
import { StoreUnavailable } from '../ports/errors.ts';
import { withPromptReads } from './prompt-reads.ts';

it('a read that times out is StoreUnavailable; other reads are unchanged', async () => {
  const read = {
    rows: {
      stalled: () => new Promise<string>(() => undefined),
      answered: async (name: string) => `row ${name}`,
      refused: async () => Promise.reject(new Error('refused')),
    },
  };
  const store = withPromptReads({ read }, { answerMs: 20 });
  await expect(store.read.rows.stalled()).rejects.toThrow(StoreUnavailable);
  expect(await store.read.rows.answered('a')).toBe('row a');
  await expect(store.read.rows.refused()).rejects.toThrow('refused');
});

it('a slow read is awaited only while the database answers other reads', async () => {
  const long = Promise.withResolvers<string>();
  const stalled = Promise.withResolvers<string>();
  const read = { rows: { long: () => long.promise, stalled: () => stalled.promise } };
  let proofs = 0;
  const prove = async () => {
    proofs++;
    if (proofs === 3) long.resolve('all rows');
  };
  const store = withPromptReads({ read }, { answerMs: 20, prove });
  expect(await store.read.rows.long()).toBe('all rows');
  expect(proofs).toBe(3);
  let asked = 0;
  const hangs = withPromptReads(
    { read },
    { answerMs: 20, prove: () => (++asked < 3 ? Promise.resolve() : new Promise(() => undefined)) },
  );
  await expect(hangs.read.rows.stalled()).rejects.toThrow(StoreUnavailable);
  expect(asked).toBe(3);
});
