import { type FigureSpec, sumOf, toCount, toUsd, type Values } from '../../../operator-kit/figures/figure.ts';
import { SAMPLE_MS } from '../../../operator-kit/figures/recorder.ts';
import { addValues, countBy, HOUR_MS, quantileOf, split } from '../../../operator-kit/figures/rows.ts';
import { type FigureDeps, figuresViewOf } from '../../../operator-kit/figures/view.ts';
import type { FigureRow } from '../../../operator-kit/model.ts';
import { CALL_BUCKETS, ONLINE_BUCKETS } from '../../model/telemetry.ts';
import { CALLS } from './call-counts.ts';
import { CAPACITY, OUTCOMES } from './source.ts';

const PLACE = ['offer', 'region'];

/** The sums of each platform's offers, divided by the number of its samples. */
function averageUnits(subjects: readonly (readonly FigureRow[])[]): number[] | null {
  const averages = subjects.flatMap((rows) => {
    const samples = Number(rows.find(([offer]) => offer === '')?.[2] ?? 0);
    const offers = rows.filter(([offer]) => offer !== '');
    if (samples === 0 || offers.length === 0) return [];
    const sums = offers.map((row) => split(row).values).reduce(addValues, []);
    return [sums.map((sum) => sum / samples)];
  });
  return averages.length === 0 ? null : averages.reduce(addValues, []);
}

const units: FigureSpec = {
  name: 'units',
  title: 'Units',
  unit: 'units',
  about:
    'Averages of samples every five minutes. sold: held by instances · in repair: held by failed machines, machines that are being removed and machines without a row · not for sale: cordoned, under maintenance, or on a platform that is frozen or full · stopped: stopped instances, with or without a unit.',
  series: CAPACITY,
  labels: PLACE,
  columns: ['sold', 'in_repair', 'not_for_sale', 'free', 'units', 'sold_percent', 'stopped'],
  drawn: ['sold', 'in_repair', 'not_for_sale', 'free'],
  shape: 'area',
  read: (subjects) => {
    const averages = averageUnits(subjects);
    if (averages === null) return null;
    const [all = 0, sold = 0, free = 0, stopped = 0, in_repair = 0] = averages;
    const not_for_sale = Math.max(0, all - sold - free - in_repair);
    const sold_percent = all === 0 ? 0 : (100 * sold) / all;
    return { sold, in_repair, not_for_sale, free, units: all, sold_percent, stopped };
  },
  summarise: ({ sold_percent = 0 }) => `${sold_percent.toFixed(0)} % sold on average`,
};

const earned: FigureSpec = {
  name: 'earned',
  title: 'Earned',
  unit: 'USD',
  about: 'Prices of the instances that were ONLINE. Time in which no server ran is missing.',
  series: CAPACITY,
  labels: PLACE,
  columns: ['earned'],
  shape: 'bars',
  read: (subjects) => {
    const known = subjects.flat().filter(([offer]) => offer !== '');
    if (known.length === 0) return null;
    const sum = known.reduce((total, row) => total + (split(row).values[5] ?? 0), 0);
    return { earned: (sum * SAMPLE_MS) / HOUR_MS / 1_000_000 };
  },
  summarise: ({ earned: usd = 0 }) => toUsd(usd),
};

const outcomes = { series: OUTCOMES, labels: PLACE, unit: 'count', shape: 'bars' } as const;

const creates: FigureSpec = {
  ...outcomes,
  name: 'creates',
  title: 'Creates',
  about: 'Creates that ended in this time. deleted: by their owner, before they were ONLINE.',
  columns: ['online', 'failed', 'deleted'],
  read: (subjects) => ({
    online: 0,
    failed: 0,
    deleted: 0,
    ...countBy(subjects.flat(), (labels) => (labels[2] === 'broke' ? undefined : labels[2])),
  }),
  summarise: ({ online = 0, failed = 0 }) => `${toCount(online)} came ONLINE, ${toCount(failed)} failed`,
};

const failures: FigureSpec = {
  ...outcomes,
  name: 'failures',
  title: 'Failures by cause',
  about: 'Instances that went to ERROR, of creates and later, by the last call that failed.',
  read: (subjects) =>
    countBy(subjects.flat(), (labels) => (/^(failed|broke)$/.test(labels[2] ?? '') ? labels[3] : undefined)),
  summarise: (causes) => `${toCount(sumOf(causes))} instances`,
};

function readTimes(rows: readonly FigureRow[], bounds: readonly number[]): Values {
  const all = rows.map((row) => split(row).values).reduce(addValues, []);
  const [p50, p95] = [quantileOf(all, bounds, 0.5), quantileOf(all, bounds, 0.95)];
  return p50 === undefined || p95 === undefined ? {} : { p50, p95 };
}

const summariseTimes = ({ p50, p95 }: Values): string =>
  p50 === undefined || p95 === undefined ? 'none' : `p50 ${toDuration(p50)}, p95 ${toDuration(p95)}`;

function toDuration(seconds: number): string {
  return seconds < 1 ? `${Math.round(1000 * seconds)} ms` : `${Math.round(seconds)} s`;
}

const times = { unit: 's', shape: 'lines', columns: ['p50', 'p95'], summarise: summariseTimes } as const;

const onlineTime: FigureSpec = {
  ...outcomes,
  ...times,
  name: 'online_time',
  title: 'Time to ONLINE',
  about: 'From the create request until the instance is first ONLINE, estimated from buckets.',
  read: (subjects) =>
    readTimes(
      subjects.flat().filter(([, , outcome]) => outcome === 'online'),
      ONLINE_BUCKETS,
    ),
};

const calls = { series: CALLS, labels: ['call'] } as const;

const answers: FigureSpec = {
  ...calls,
  name: 'answers',
  title: 'Answers of the platform',
  unit: 'count',
  shape: 'bars',
  about: 'Finished calls to the platform and SSH proofs, by outcome or reason for failure.',
  read: (subjects) => countBy(subjects.flat(), ([, outcome]) => outcome),
  summarise: (found) => `${toCount(sumOf(found))} calls`,
};

const callTime: FigureSpec = {
  ...calls,
  ...times,
  name: 'call_time',
  title: 'Duration of calls',
  about: 'Calls to the platform, without SSH proofs, estimated from buckets.',
  read: (subjects) =>
    readTimes(
      subjects.flat().filter(([call]) => call !== 'ssh'),
      CALL_BUCKETS,
    ),
};

/** What the pages show. */
export const figures = { units, earned, creates, failures, onlineTime, answers, callTime };

export const figuresView = figuresViewOf<FigureDeps>({
  specs: Object.values(figures),
  filters: {
    offer: 'this offer (not for answers and call_time)',
    region: 'this region (not for answers and call_time)',
    platform: 'this platform',
    call: 'this call, such as `create` (for answers and call_time)',
  },
  toFilter: ({ platform, offer, region, call }) => ({
    subject: platform as string | undefined,
    labels: { offer, region, call } as Record<string, string | undefined>,
  }),
});
