import { readFileSync } from 'node:fs';
import { startEmbedded } from './embedded-postgres.ts';
import { type PostgresServer, startPostgres } from './postgres.ts';

/** A PostgreSQL of its own that can be made to stand still. */
export interface StallingPostgres extends PostgresServer {
  /** No process of the server and of Berth's connections runs until `resume`. */
  stall(): Promise<void>;
  resume(): void;
}

export async function startStallingPostgres(): Promise<StallingPostgres> {
  const embedded = await startEmbedded();
  process.env['BERTH_TEST_POSTGRES'] = embedded.url;
  const postgres = await startPostgres();
  let pids: number[] = [];
  const resume = () => {
    for (const pid of pids) process.kill(pid, 'SIGCONT');
    pids = [];
  };
  return {
    ...postgres,
    stall: async () => {
      pids = await pidsOf(postgres);
      for (const pid of pids) process.kill(pid, 'SIGSTOP');
    },
    resume,
    async [Symbol.asyncDispose]() {
      resume();
      await postgres[Symbol.asyncDispose]();
      await embedded.stop();
      delete process.env['BERTH_TEST_POSTGRES'];
    },
  };
}

/** Of the server and of the processes that answer Berth. */
async function pidsOf(postgres: PostgresServer): Promise<number[]> {
  const rows = await postgres.query(
    "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'berth%' AND backend_type = 'client backend'",
  );
  const backends = rows.map(({ pid }) => Number(pid));
  const [, postmaster] = /\) \S (\d+)/.exec(readFileSync(`/proc/${backends[0]}/stat`, 'utf8')) ?? [];
  return [...backends, Number(postmaster)];
}
