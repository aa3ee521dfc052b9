import type { ProviderError, ProviderProblem } from '../../client/orchestrator-client.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { logNames } from '../model/deployment-record.ts';

/** These problems concern the whole provider; all others concern the resource of the call. */
export const providerWideProblems = [
  'unreachable',
  'timeout',
  'unauthorized',
  'limited',
  'failed',
] as const satisfies readonly ProviderProblem[];
export type ProviderWideProblem = (typeof providerWideProblems)[number];

/** A problem is over after this time without it, so that an intermittent problem is logged once. */
const OVER_AFTER_MS = 60_000;
/** Longer than any pause between two calls about one subject. A subject without calls for this time is abandoned. */
const ABANDONED_AFTER_MS = 15 * 60_000;

/** The subject of a call: a deployment, or anything else by its id. */
type Subject = Parameters<typeof logNames>[0] | string;

/** Logs a problem with a provider's answers once instead of at every poll, and logs when it is over. */
export class ProviderHealth {
  readonly #providerId: string;
  readonly #deps: { clock: Clock; log: Log };
  readonly #problems = new Map<ProviderWideProblem, number>();
  /** For each subject, the time since which its calls have failed without a success, and the last failure. */
  readonly #failing = new Map<string, { problem: ProviderWideProblem; since: number; until: number }>();
  readonly #ignoredAnswers = new Map<string, string>();

  constructor(deps: { clock: Clock; log: Log }, providerId: string) {
    this.#deps = deps;
    this.#providerId = providerId;
  }

  get problems(): ProviderWideProblem[] {
    return [...this.#problems.keys()];
  }

  /**
   * For each problem, the longest time in milliseconds for which one subject's calls have failed without a success, the
   * last time with this problem. A whole region that fails counts; one failed call in a hundred does not.
   */
  get failingMs(): ReadonlyMap<ProviderWideProblem, number> {
    const now = this.#deps.clock.now();
    const longest = new Map<ProviderWideProblem, number>();
    for (const [subject, { problem, since, until }] of this.#failing) {
      if (now - until >= ABANDONED_AFTER_MS) this.#failing.delete(subject);
      else longest.set(problem, Math.max(longest.get(problem) ?? 0, until - since));
    }
    return longest;
  }

  /** A call about `subject` did not succeed. */
  failed(subject: Subject, error: ProviderError): void {
    const { problem, message } = error;
    if (!isProviderWide(problem)) {
      this.ignored(subject, `${problem}: ${message}`);
      return;
    }
    if (!this.#problems.has(problem))
      this.#deps.log.warn(
        { provider: this.#providerId, problem, detail: message },
        'calls to the provider fail: its last known state is kept until it answers again',
      );
    const now = this.#deps.clock.now();
    const id = typeof subject === 'string' ? subject : subject.id;
    this.#problems.set(problem, now);
    this.#failing.set(id, { problem, since: this.#failing.get(id)?.since ?? now, until: now });
  }

  /** An answer about `subject` is ignored, at least for now. */
  ignored(subject: Subject, reason: string): void {
    const id = typeof subject === 'string' ? subject : subject.id;
    this.#failing.delete(id);
    if (this.#ignoredAnswers.get(id) === reason) return;
    this.#ignoredAnswers.set(id, reason);
    this.#deps.log.warn(
      {
        ...(typeof subject === 'string' ? { subject } : logNames(subject)),
        provider: this.#providerId,
        reason,
      },
      'an answer of the provider is ignored: the last known state is kept',
    );
  }

  /** An answer about `subject` was usable. */
  answered(subject: string): void {
    this.forget(subject);
    const now = this.#deps.clock.now();
    for (const [problem, seenAt] of this.#problems) {
      if (now - seenAt < OVER_AFTER_MS) continue;
      this.#problems.delete(problem);
      this.#deps.log.info({ provider: this.#providerId, problem }, 'the provider answers again');
    }
  }

  /** `subject` is no longer polled. */
  forget(subject: string): void {
    this.#ignoredAnswers.delete(subject);
    this.#failing.delete(subject);
  }

  /** Drops everything, because other processes call the provider now. */
  clear(): void {
    this.#problems.clear();
    this.#failing.clear();
    this.#ignoredAnswers.clear();
  }
}

function isProviderWide(problem: ProviderProblem): problem is ProviderWideProblem {
  return (providerWideProblems as readonly ProviderProblem[]).includes(problem);
}
