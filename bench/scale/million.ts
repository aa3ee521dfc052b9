import type { StoreKind } from './measure.ts';
import type { Row } from './run.ts';

/** What a million deployments would need for one kind of work. */
export interface Need {
  what: string;
  store: StoreKind;
  /** With how many deployments it was measured. */
  n: number;
  /** Busy all the time, those of the database included. */
  cores: number;
  /** Transactions; absent: not measured. */
  writesPerS?: number;
  /** Absent: not measured. */
  gibADay?: number;
}

/** The figures of a row, by their names. */
type Figures = (name: string) => number;
type Costs = Pick<Need, 'cores' | 'writesPerS' | 'gibADay'>;

const TEN = 10;
const MILLION = 1_000_000;
const HOUR_S = 3_600;
const DAY_S = 86_400;
const KIB_PER_GIB = 1_024 ** 2;

/** From what one deployment costs, by the id of the measure. */
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

/** Each from the cost of one among the most that were measured. */
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

/** The cores of each as a bar. */
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
