import type { ProviderError, ProviderProblem } from '../../client/orchestrator-client.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { type DeploymentRecord, logNames } from '../model/deployment-record.ts';

/** These problems concern the whole provider; all others concern the resource of the call. */
const OF_ALL: readonly ProviderProblem[] = ['unreachable', 'timeout', 'unauthorized', 'limited', 'failed'];
/** A problem is over after so long without it, so that an intermittent one is logged once. */
const OVER_AFTER_MS = 60_000;

/** What a call was about: a deployment, or anything else by its id. */
type Subject = Pick<DeploymentRecord, 'id' | 'teamId' | 'launch'> | string;

/** Logs problems with a provider's answers once, not with every poll, and again when they are over. */
export class ProviderHealth {
  readonly #providerId: string;
  readonly #deps: { clock: Clock; log: Log };
  readonly #problems = new Map<ProviderProblem, number>();
  readonly #ignoredAnswers = new Map<string, string>();

  constructor(deps: { clock: Clock; log: Log }, providerId: string) {
    this.#deps = deps;
    this.#providerId = providerId;
  }

  /** What is wrong with calls to the provider now. */
  get problems(): ProviderProblem[] {
    return [...this.#problems.keys()];
  }

  /** A call about `subject` did not succeed. */
  failed(subject: Subject, error: ProviderError): void {
    if (!OF_ALL.includes(error.problem)) {
      this.ignored(subject, `${error.problem}: ${error.message}`);
      return;
    }
    if (!this.#problems.has(error.problem))
      this.#deps.log.warn(
        { provider: this.#providerId, problem: error.problem, detail: error.message },
        'calls to the provider fail: what is known of it is kept until it answers again',
      );
    this.#problems.set(error.problem, this.#deps.clock.now());
  }

  /** An answer about `subject` is ignored, at least for now. */
  ignored(subject: Subject, reason: string): void {
    const [id, names] =
      typeof subject === 'string' ? [subject, { subject }] : [subject.id, logNames(subject)];
    if (this.#ignoredAnswers.get(id) === reason) return;
    this.#ignoredAnswers.set(id, reason);
    this.#deps.log.warn(
      { ...names, provider: this.#providerId, reason },
      'an answer of the provider is ignored: what is known is kept',
    );
  }

  /** An answer about `subject` was usable. */
  answered(subject: string): void {
    this.#ignoredAnswers.delete(subject);
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
  }
}
