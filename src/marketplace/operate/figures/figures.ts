import { type FigureSpec, sumOf, toCount, toUsd } from '../../../operator-kit/figures/figure.ts';
import { addValues, countBy } from '../../../operator-kit/figures/rows.ts';
import { type FigureDeps, figuresViewOf } from '../../../operator-kit/figures/view.ts';
import type { FigureRow } from '../../../operator-kit/model.ts';
import type { Store } from '../../model/store.ts';
import { BURN, DEBT, LAUNCHES } from './source.ts';
import { USAGE, usageReaderOf } from './usage.ts';

const USD = 1_000_000;

const revenue: FigureSpec = {
  name: 'revenue',
  title: 'Revenue',
  unit: 'USD',
  about:
    'Usage at the prices of teams, after discounts, as far as providers have confirmed it; payments, grants and corrections are on the page Books. provider cost: what providers charge for the same time · cost unknown: revenue for which that is not known.',
  series: USAGE,
  labels: [],
  columns: ['provider_cost', 'margin', 'cost_unknown', 'revenue'],
  drawn: ['provider_cost', 'margin', 'cost_unknown'],
  shape: 'bars',
  read: (subjects) => {
    const sums = subjects.flat().map((row) => row.map(Number));
    const [all = 0, known = 0, cost = 0] = sums.reduce(addValues, []).map((microUsd) => microUsd / USD);
    return { provider_cost: cost, margin: known - cost, cost_unknown: all - known, revenue: all };
  },
  summarise: ({ revenue: usd = 0, margin = 0, cost_unknown = 0 }) =>
    `${toUsd(usd)}, margin ${toUsd(margin)}${cost_unknown > 0 ? ' without what is unknown' : ''}`,
};

/** The average of samples: each row has their number and their sum. */
function averageUsd(subjects: readonly (readonly FigureRow[])[]): number {
  const averages = subjects.flat().map(([samples, sum]) => Number(sum) / Number(samples) / USD);
  return averages.reduce((all, average) => all + average, 0);
}

const burn: FigureSpec = {
  name: 'burn',
  title: 'Burn',
  unit: 'USD per hour',
  about:
    'The hourly cost of what teams are billed for, after discounts. Averages of samples every five minutes.',
  series: BURN,
  labels: [],
  columns: ['burn'],
  shape: 'area',
  read: (subjects) => ({ burn: averageUsd(subjects) }),
  summarise: ({ burn: usd = 0 }) => `${toUsd(usd)} per hour on average`,
};

const badDebt: FigureSpec = {
  name: 'bad_debt',
  title: 'Bad debt',
  unit: 'USD',
  about:
    'What teams owe beyond their balances, of all providers. Averages of samples every five minutes. What is not charged yet is counted without discounts.',
  series: DEBT,
  labels: [],
  columns: ['bad_debt'],
  shape: 'area',
  read: (subjects) => ({ bad_debt: averageUsd(subjects) }),
  summarise: ({ bad_debt = 0 }) => `${toUsd(bad_debt)} on average`,
};

const ofLaunches = { series: LAUNCHES, labels: [], unit: 'count', shape: 'bars' } as const;

const launches: FigureSpec = {
  ...ofLaunches,
  name: 'launches',
  title: 'Launches',
  about:
    'Deployments by the time of their request. launched: running, still being deployed, or ended before they were. failed: before they were running.',
  columns: ['launched', 'failed'],
  read: (subjects) => ({
    launched: 0,
    failed: 0,
    ...countBy(subjects.flat(), ([reason]) => (reason === '' ? 'launched' : 'failed')),
  }),
  summarise: ({ launched = 0, failed = 0 }) =>
    `${toCount(launched + failed)}, of which ${toCount(failed)} failed`,
};

const failures: FigureSpec = {
  ...ofLaunches,
  name: 'failures',
  title: 'Failed launches',
  about: 'Deployments that failed before they were running, by reason and by the time of their request.',
  read: (subjects) => countBy(subjects.flat(), ([reason]) => reason || undefined),
  summarise: (reasons) => toCount(sumOf(reasons)),
};

/** What the pages show. */
export const figures = { revenue, burn, badDebt, launches, failures };

export const figuresView = figuresViewOf<FigureDeps & { store: Pick<Store, 'read'> }>({
  specs: Object.values(figures),
  filters: {
    provider: 'this provider (not for bad_debt)',
    team: 'the team with this id (for revenue)',
  },
  toFilter: ({ provider }) => ({ subject: provider as string | undefined }),
  readerOf: ({ store: { read }, clock }, { team }) =>
    typeof team === 'string' ? usageReaderOf(read, team, clock.now()) : read.figures,
});
