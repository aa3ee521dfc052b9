import { Bench, CheckFailure, type DriverContext, Untried } from './bench.ts';

/** One requirement of the core, tested on a real driver. */
export interface DriverCheck {
  /** Id of the check. It never changes, because reports name it. */
  id: string;
  title: string;
  /** The consequence if the requirement is not met. */
  why: string;
  /** How the author of a driver meets it. */
  remedy: string;
  /** @throws {CheckFailure | Untried} with the problem, or with the reason why it was not tried */
  run(bench: Bench): Promise<void>;
}

export type CheckResult =
  | { outcome: 'passed' }
  | { outcome: 'untried'; reason: string }
  | { outcome: 'failed'; problem: string; during: 'check' | 'removal'; cause: unknown };

/** Runs one check and removes what it made. The caller closes the context. */
export async function runCheck(check: DriverCheck, context: DriverContext): Promise<CheckResult> {
  const bench = new Bench(context);
  const result = await attempt(() => check.run(bench));
  const cleanup = await attempt(() => bench.cleanUp());
  if (result.outcome === 'failed' || cleanup.outcome !== 'failed') return result;
  return {
    outcome: 'failed',
    problem: `what the check made could not be removed: ${cleanup.problem}`,
    during: 'removal',
    cause: cleanup.cause,
  };
}

async function attempt(body: () => Promise<void>): Promise<CheckResult> {
  try {
    await body();
    return { outcome: 'passed' };
  } catch (error) {
    if (error instanceof Untried) return { outcome: 'untried', reason: error.message };
    const failed = { outcome: 'failed', during: 'check', cause: error } as const;
    if (error instanceof CheckFailure) return { ...failed, problem: error.message };
    return {
      ...failed,
      problem: `a call threw: ${error instanceof Error ? (error.stack ?? error.message) : error}`,
    };
  }
}
