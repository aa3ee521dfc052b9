import { readdirSync, readFileSync } from 'node:fs';
import { Client } from 'pg';
import { isPostgres } from '../../src/config/server-schema.ts';

/** Returns the user and system time of this process in µs, including its PostgreSQL if the database is one. */
export type CpuMeter = () => number;

/** One kernel tick, the unit of /proc. */
const US_PER_TICK = 10_000;

export async function cpuMeter(database: string): Promise<CpuMeter> {
  const own = (): number => {
    const { user, system } = process.cpuUsage();
    return user + system;
  };
  const postgres = await postgresMeter(database);
  return () => own() + postgres();
}

/** The CPU time of the PostgreSQL of `database`; 0 if it is another database. */
export async function postgresMeter(database: string): Promise<CpuMeter> {
  if (!isPostgres(database)) return () => 0;
  const postmaster = await findPostmaster(database);
  return () => US_PER_TICK * ticksOfTree(postmaster);
}

/** CPU µs that `body` takes. */
export async function cpuOf(meter: CpuMeter, body: () => Promise<void>): Promise<number> {
  const before = meter();
  await body();
  return meter() - before;
}

/** Bytes that this process has written, including those not on disk yet. */
export function bytesWritten(): number {
  const [, bytes = 'NaN'] = /^wchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8')) ?? [];
  return Number(bytes);
}

/** The parent of the process that answers. @throws {Error} if it is not on this machine. */
async function findPostmaster(url: string): Promise<number> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    const parent = rows[0] && statOf(rows[0].pid)?.parent;
    if (parent === undefined)
      throw new Error('the CPU time of a PostgreSQL on another machine cannot be read');
    return parent;
  } finally {
    await client.end();
  }
}

/** The ticks of a process and its children, including ended ones. */
function ticksOfTree(root: number): number {
  let ticks = 0;
  for (const name of readdirSync('/proc')) {
    const stat = statOf(Number(name));
    if (stat === undefined) continue;
    if (Number(name) === root) ticks += stat.own + stat.ended;
    else if (stat.parent === root) ticks += stat.own;
  }
  return ticks;
}

function statOf(pid: number): { parent: number; own: number; ended: number } | undefined {
  if (!Number.isInteger(pid)) return undefined;
  try {
    // The name in parentheses may contain anything. Numbers follow, from the third field on.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
      .map(Number);
    const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15);
    return { parent: fields[1] ?? 0, own: user + system, ended: endedUser + endedSystem };
  } catch {
    return undefined;
  }
}
