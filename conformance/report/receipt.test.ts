import { expect, it } from 'vitest';
import { toLeftovers } from './receipt.ts';

it('says how a volume without an id is looked for, and how the ledger is told that it is not there', () => {
  const volume = { kind: 'resource', entry: 1, type: 'volume', name: 'v-1', step: 's', at: 1 } as const;
  const [left] = toLeftovers([{ ...volume, state: 'unknown' }], [], 'https://h.example/v1');
  expect(left?.how).toMatch(
    /volume named v-1 .*berth conformance sweep https:\/\/h.example\/v1 --absent v-1$/,
  );
});
