import { type Judged, judge } from './judge.ts';
import type { Figure, Measure, StoreKind } from './measure.ts';
import { SubjectProcess } from './subject-process.ts';

/** A line of the table. */
export interface Row extends Judged {
  id: string;
  what: string;
  /** The name of the figure. */
  name: string;
  store: StoreKind;
  n: number;
  of: string;
  figure: Figure;
}

export interface RunOptions {
  isQuick: boolean;
  /** Overrides the measure's own. */
  n: number | undefined;
  /** Creates a PostgreSQL database, on a server of its own if `isOwn`. */
  createDatabase: (isOwn: boolean) => Promise<string>;
}

const TEN = 10;

/**
 * Whether both sizes, and other such rows, are measured at the same time, each with a PostgreSQL of its own. A server
 * that was given would mix their CPU times.
 */
export function runsBesideOthers({ isTogether }: Measure, isQuick: boolean): boolean {
  return isQuick && isTogether === 'quick' && process.env['BERTH_TEST_POSTGRES'] === undefined;
}

/**
 * Measures with n and with 10 n, in alternating rounds, so that other load affects both. If a figure grew by more than
 * allowed, measures as many rounds again. Only growth over all rounds counts.
 */
export async function run(measure: Measure, store: StoreKind, options: RunOptions): Promise<Row[]> {
  const { isQuick } = options;
  const n = options.n ?? measure.n[isQuick ? 'quick' : 'full'];
  const rounds = measure.rounds?.[isQuick ? 'quick' : 'full'] ?? (isQuick ? 3 : 5);
  const isQuickTogether = runsBesideOthers(measure, isQuick);
  const shared = store === 'postgres' && !isQuickTogether ? await options.createDatabase(false) : undefined;
  const opened = await Promise.allSettled(
    [n, TEN * n].map(async (size) => {
      const postgres = store === 'postgres' ? (shared ?? (await options.createDatabase(true))) : undefined;
      return SubjectProcess.open({ id: measure.id, store, n: size, isQuick }, postgres);
    }),
  );
  const subjects = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  try {
    for (const one of opened) if (one.status === 'rejected') throw one.reason;
    const [few, many] = subjects as [SubjectProcess, SubjectProcess];
    const taken: [few: Record<string, number>, many: Record<string, number>][] = [];
    const rowsOf = () =>
      Object.entries(measure.figures)
        // Figures that cannot be measured here, such as another process's fsyncs, have no line.
        .filter(([name]) => taken.every((pair) => pair.every((round) => name in round)))
        .map(([name, figure]): Row => {
          const at = (side: 0 | 1) => taken.map((pair) => pair[side][name] ?? Number.NaN);
          const { id, what, of } = measure;
          return { id, what, name, store, n, of, figure, ...judge(figure, at(0), at(1)) };
        });
    const isTogether = measure.isTogether === true || isQuickTogether;
    const measureRounds = async () => {
      for (let round = 0; round < rounds; round++)
        taken.push(
          isTogether
            ? await Promise.all([few.round(), many.round()])
            : [await few.round(), await many.round()],
        );
    };
    await measureRounds();
    if (rowsOf().some(({ isTooMuch }) => isTooMuch)) await measureRounds();
    return rowsOf();
  } finally {
    await Promise.all(subjects.map((subject) => subject.close()));
  }
}
