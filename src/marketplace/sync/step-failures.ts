import { logNames } from '../model/deployment-record.ts';
import { StoreUnavailable } from '../model/store.ts';
import type { SyncDeps } from './context.ts';

/** The common cause of all steps that fail while the database does not answer. */
const STORE = 'store';

/** Logs a step that throws, because of a bug or an unavailable store, once until it succeeds again. */
export class StepFailures {
  readonly #deps: Pick<SyncDeps, 'store' | 'log'>;
  readonly #providerId: string;
  readonly #failing = new Set<string>();

  constructor(deps: Pick<SyncDeps, 'store' | 'log'>, providerId: string) {
    this.#deps = deps;
    this.#providerId = providerId;
  }

  succeeded(step: string, subjectId: string | undefined): void {
    this.#failing.delete(keyOf(step, subjectId));
    this.#failing.delete(STORE);
  }

  async failed(error: unknown, step: string, subjectId: string | undefined): Promise<void> {
    const cause = error instanceof StoreUnavailable ? STORE : keyOf(step, subjectId);
    if (this.#failing.has(cause)) return;
    this.#failing.add(cause);
    const fields = { err: error, ...(await this.#namesOf(subjectId)), provider: this.#providerId, step };
    this.#deps.log.error(fields, 'a step failed; it will be retried');
  }

  /** The names for the log. While the store does not answer, they are only the id. */
  async #namesOf(subjectId: string | undefined): Promise<object> {
    if (subjectId === undefined) return {};
    const record = await this.#deps.store.read.deployments.byId(subjectId).catch(() => null);
    return record === null ? { deployment: subjectId } : logNames(record);
  }
}

function keyOf(step: string, subjectId = ''): string {
  return `${step} ${subjectId}`;
}
