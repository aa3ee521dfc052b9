import type { StoreKind } from './measure.ts';
import type { Row } from './run.ts';

/** The needs of a million deployments for one kind of work. */
export interface Need {
  what: string;
  store: StoreKind;
  /** Number of deployments in the measurement. */
  n: number;
  /** Cores in constant use, including the database's. */
  cores: number;
  /** Transactions; absent: not measured. */
  writesPerS?: number;
  /** Absent: not measured. */
  gibADay?: number;
}

/** Returns a figure of a row by its name. */
type Figures = (name: string) => number;
type Costs = Pick<Need, 'cores' | 'writesPerS' | 'gibADay'>;

const TEN = 10;
const MILLION = 1_000_000;
const HOUR_S = 3_600;
const DAY_S = 86_400;
const KIB_PER_GIB = 1_024 ** 2;

/** Extrapolated from the cost of one deployment, by the id of the measure. */
const works: Readonly<Record<string, { what: string; costsOf(figure: Figures, n: number): Costs }>> = {
  'idle-sync': { what: 'poll each every 10 to 30 s', costsOf: sync },
  'idle-sync-changes': { what: 'the same where all providers list changes', costsOf: sync },
  'billing-hour': {
    what: 'bill each once an hour',
    costsOf: (figure) => ({
      cores: figure('coresAMillion'),
      writesPerS: (figure('writes') * MILLION) / HOUR_S,
      gibADay: (figure('kib') * 24 * MILLION) / KIB_PER_GIB,
    }),
  },
  'roll-up': {
    what: 'roll each day of each up',
    costsOf: (figure) => ({ cores: (figure('cpuMs') * MILLION) / 1_000 / DAY_S }),
  },
  'create-deployment': {
    what: 'create each anew once a day',
    costsOf: (figure) => ({ cores: (figure('cpuMs') * MILLION) / 1_000 / DAY_S }),
  },
  'moved-ranges': {
    what: 'move all to other servers once an hour',
    costsOf: (figure, n) => ({
      cores: figure('cpuUs') / HOUR_S,
      writesPerS: (figure('writes') * MILLION) / n / HOUR_S,
    }),
  },
};

function sync(figure: Figures, n: number): Costs {
  return {
    cores: (figure('corePercentOf1000') * MILLION) / 1_000 / 100,
    writesPerS: (figure('writesPerS') * MILLION) / n,
    gibADay: (figure('kibADay') * MILLION) / KIB_PER_GIB,
  };
}

/** Uses the cost of one deployment in the largest measurement. */
export function needsOfAMillion(rows: readonly Row[]): Need[] {
  return Object.entries(works).flatMap(([id, { what, costsOf }]) =>
    (['sqlite', 'postgres'] as const).flatMap((store) => {
      const own = rows.filter((row) => row.id === id && row.store === store);
      const n = TEN * (own[0]?.n ?? 0);
      const figure: Figures = (name) => own.find((row) => row.name === name)?.valueAtTen ?? Number.NaN;
      return own.length === 0 ? [] : [{ what, store, n, ...costsOf(figure, n) }];
    }),
  );
}

const WIDEST = 40;

/** Formats the cores of each as a bar. */
export function toBars(needs: readonly Need[]): string[] {
  const most = Math.max(...needs.map(({ cores }) => cores));
  const width = Math.max(...needs.map(({ what }) => what.length));
  return needs.map(
    ({ what, cores }) =>
      `${what.padEnd(width)}  ${'█'.repeat(Math.max(1, Math.round((WIDEST * cores) / most)))} ${toShort(cores)}`,
  );
}

function toShort(value: number): string {
  return String(Number(value.toPrecision(2)));
}
