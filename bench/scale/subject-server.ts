import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres } from '../../test/support/databases/postgres.ts';
import { measures } from './measures.ts';
import { answerRounds, type SubjectOrder } from './subject-process.ts';

// The process of one subject, given as JSON.
const { id, store, n, isQuick } = JSON.parse(process.argv[2] ?? '{}') as SubjectOrder;
const measure = measures.find((one) => one.id === id);
if (measure === undefined) throw new Error(`there is no measure ${id}`);
const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
const postgres = store === 'postgres' ? await startPostgres() : undefined;
let files = 0;
const createDatabase = async (): Promise<string> =>
  postgres === undefined ? `sqlite:${join(folder, `${++files}.db`)}` : postgres.createDatabase();
const cleanUp = async (): Promise<void> => {
  rmSync(folder, { recursive: true, force: true });
  await postgres?.[Symbol.asyncDispose]();
};
try {
  const { open } = await measure.load();
  const subject = await open({ n, isQuick, folder, createDatabase });
  answerRounds(subject, cleanUp);
} catch (error) {
  await cleanUp();
  throw error;
}
