import { expect, it } from 'vitest';
import { toLeftovers } from './receipt.ts';

it('says how to search for a volume without an id, and how to record in the ledger that it does not exist', () => {
  const volume = { kind: 'resource', entry: 1, type: 'volume', name: 'v-1', step: 's', at: 1 } as const;
  const [left] = toLeftovers([{ ...volume, state: 'unknown' }], [], 'https://h.example/v1');
  expect(left?.how).toMatch(
    /volume named v-1 .*berth conformance sweep https:\/\/h.example\/v1 --absent v-1$/,
  );
});
