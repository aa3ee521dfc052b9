import { Bench, CheckFailure, type DriverContext } from './bench.ts';

/** One requirement of the core, tested on a real driver. */
export interface DriverCheck {
  /** Never changes: reports name it. */
  id: string;
  title: string;
  /** The consequence if the requirement is not met. */
  why: string;
  /**
   * Resolves with a reason if the context lacks something that the check needs.
   *
   * @throws {CheckFailure} with the problem
   */
  run(bench: Bench): Promise<Untried | undefined>;
}

export interface Untried {
  untried: string;
}

export type CheckResult =
  | { outcome: 'passed' }
  | { outcome: 'untried'; reason: string }
  | { outcome: 'failed'; problem: string; during: 'check' | 'removal'; cause: unknown };

/** Runs one check and removes what it made. The caller closes the context. */
export async function runCheck(check: DriverCheck, context: DriverContext): Promise<CheckResult> {
  const bench = new Bench(context);
  const result = await attempt(() => check.run(bench));
  const cleanup = await attempt(async () => {
    await bench.cleanUp();
    return undefined;
  });
  if (result.outcome === 'failed' || cleanup.outcome !== 'failed') return result;
  return {
    outcome: 'failed',
    problem: `what the check made could not be removed: ${cleanup.problem}`,
    during: 'removal',
    cause: cleanup.cause,
  };
}

async function attempt(body: () => Promise<Untried | undefined>): Promise<CheckResult> {
  try {
    const untried = await body();
    return untried ? { outcome: 'untried', reason: untried.untried } : { outcome: 'passed' };
  } catch (error) {
    const failed = { outcome: 'failed', during: 'check', cause: error } as const;
    if (error instanceof CheckFailure) return { ...failed, problem: error.message };
    return {
      ...failed,
      problem: `a call threw: ${error instanceof Error ? (error.stack ?? error.message) : error}`,
    };
  }
}
