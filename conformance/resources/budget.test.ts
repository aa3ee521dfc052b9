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
  expect(() => budget(true).allow([0.5, 0.6, undefined])).toThrow(/more than --max-cost 1\.00/);
});
