import type { Clock, Random } from '../../ports/clock.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';

/** Rows and instances are read in full at least this often, even if nothing indicates a change. */
const LONGEST_MS = 10 * 60_000;

/** A provider's answer that confirmed a deployment without pending changes. */
export interface LastAnswer extends Pick<DeploymentRecord, 'region' | 'revision'> {
  providerInstanceId: string;
  /** The mark by which the client recognises an equal answer. */
  mark: string;
  /** From this time on, the row and the instance must be read in full. */
  until: number;
}

/**
 * The last answers about deployments at rest. An equal answer confirms the row again, without reading the row or
 * parsing the answer.
 */
export class LastAnswers {
  readonly #deps: { clock: Clock; random: Random };
  readonly #answers = new Map<string, LastAnswer>();
  /** Deployments whose rows may have changed after the current poll read them. */
  readonly #changed = new Set<string>();

  constructor(deps: { clock: Clock; random: Random }) {
    this.#deps = deps;
  }

  /** Starts a poll of the deployment. Returns its last answer, or undefined if the poll must read the row. */
  take(id: string): LastAnswer | undefined {
    const answer = this.#answers.get(id);
    this.#answers.delete(id);
    this.#changed.delete(id);
    return answer !== undefined && this.#deps.clock.now() < answer.until ? answer : undefined;
  }

  /** Stores the answer that the latest poll read in full and that confirmed the deployment. */
  keep(id: string, answer: Omit<LastAnswer, 'until'>): void {
    const { clock, random } = this.#deps;
    this.putBack(id, { ...answer, until: clock.now() + LONGEST_MS * (0.5 + random.next() / 2) });
  }

  /** Stores an answer again after an equal one has arrived. */
  putBack(id: string, answer: LastAnswer): void {
    if (!this.#changed.has(id)) this.#answers.set(id, answer);
  }

  /** Drops the answer, because the row may have changed. The next poll then reads the row. */
  rowChanged(id: string): void {
    this.#answers.delete(id);
    this.#changed.add(id);
  }
}
