import { expect, it } from 'vitest';
import { Budget, BudgetError } from './budget.ts';

function budget(acceptsUnknownCost: boolean): Budget {
  return new Budget({
    maxCostUsd: 1,
    entries: [],
    wall: () => 0,
    longestLifeMs: () => 3_600_000,
    acceptsUnknownCost,
  });
}

it('refuses what has no price, unless that was accepted', () => {
  expect(() => budget(false).allow([undefined])).toThrow(BudgetError);
  expect(() => budget(false).allow([0.5, undefined])).toThrow('--accept-unknown-cost was not given');
  expect(() => budget(true).allow([0.5, undefined])).not.toThrow();
});

it('refuses together what would pass the cap together, whatever was accepted', () => {
  expect(() => budget(false).allow([0.5, 0.5])).not.toThrow();
  expect(() => budget(true).allow([0.5, 0.6, undefined])).toThrow(
    /more than --max-cost 1 \(--max-cost 1\.10 would do\)$/,
  );
});

it('says which creates without a clear answer the money is set aside for', () => {
  const entry = { n: 1, type: 'instance', region: 'r', pricePerHour: 0.9, intendedAt: 0 } as const;
  const unclear = { ...entry, name: 'n-1', step: 'refusals/no-region', state: 'unknown' } as const;
  const capped = new Budget({
    maxCostUsd: 1,
    entries: [unclear],
    wall: () => 0,
    longestLifeMs: () => 3_600_000,
    acceptsUnknownCost: false,
  });
  expect(() => capped.allow([0.5])).toThrow(
    'set aside (with what a create without a clear answer may have made: refusals/no-region)',
  );
});
