import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PostgresServer } from '../../test/support/databases/postgres.ts';
import { type Judged, judge } from './judge.ts';
import type { Figure, Measure, StoreKind } from './measure.ts';
import { SubjectProcess } from './subject-process.ts';

/** A line of the table. */
export interface Row extends Judged {
  id: string;
  what: string;
  store: StoreKind;
  n: number;
  of: string;
  figure: Figure;
}

export interface RunOptions {
  isQuick: boolean;
  /** Where a measure needs one. */
  postgres: () => Promise<PostgresServer>;
}

const TEN = 10;

/**
 * Measures with n and with 10 n, in rounds by turns, so that what else the machine does meets both. Where a figure grew
 * by more than it may, as many rounds follow: only what is so in all of them counts.
 */
export async function run(measure: Measure, store: StoreKind, options: RunOptions): Promise<Row[]> {
  const { isQuick } = options;
  const n = measure.n[isQuick ? 'quick' : 'full'];
  const rounds = measure.rounds?.[isQuick ? 'quick' : 'full'] ?? (isQuick ? 3 : 5);
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  const subjects: SubjectProcess[] = [];
  try {
    for (const size of [n, TEN * n]) {
      const file = `sqlite:${join(folder, `${size}.db`)}`;
      const database = store === 'sqlite' ? file : await (await options.postgres()).createDatabase();
      subjects.push(await SubjectProcess.open(measure.id, { n: size, database, folder, isQuick }));
    }
    const [few, many] = subjects as [SubjectProcess, SubjectProcess];
    const taken: [few: Record<string, number>, many: Record<string, number>][] = [];
    const rowsOf = () =>
      Object.entries(measure.figures).map(([name, figure]): Row => {
        const at = (side: 0 | 1) => taken.map((pair) => pair[side][name] ?? Number.NaN);
        const { id, what, of } = measure;
        return { id, what, store, n, of, figure, ...judge(figure, at(0), at(1)) };
      });
    const measureRounds = async () => {
      for (let round = 0; round < rounds; round++) taken.push([await few.round(), await many.round()]);
    };
    await measureRounds();
    if (rowsOf().some(({ isTooMuch }) => isTooMuch)) await measureRounds();
    return rowsOf();
  } finally {
    for (const subject of subjects) await subject.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
