import type { Clock, Random } from '../../ports/clock.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';

/** Rows and instances are read in full at least this often, also where nothing says that they changed. */
export const LONGEST_MS = 10 * 60_000;

/** An answer of the provider that confirmed a deployment on which nothing is under way. */
export interface LastAnswer extends Pick<DeploymentRecord, 'region' | 'revision'> {
  providerInstanceId: string;
  /** What the same answer is recognised by. */
  mark: string;
  /** When the provider was last asked for it. */
  heardAt: number;
  /** From then on the row and the instance are read in full. */
  until: number;
}

/**
 * The last answers about deployments at rest. The same answer confirms the same row again, and neither the row has to be
 * read for that nor the answer to be parsed.
 */
export class LastAnswers {
  readonly #deps: { clock: Clock; random: Random };
  readonly #answers = new Map<string, LastAnswer>();
  /** The deployments of those answers, by their instances. */
  readonly #deployments = new Map<string, string>();
  /** Their rows may have changed while a poll was under way that had read them before. */
  readonly #changed = new Set<string>();

  constructor(deps: { clock: Clock; random: Random }) {
    this.#deps = deps;
  }

  /** A poll of the deployment begins. Undefined: it has to read the row. */
  take(id: string): LastAnswer | undefined {
    const answer = this.#answers.get(id);
    this.#delete(id);
    this.#changed.delete(id);
    return answer !== undefined && this.#deps.clock.now() < answer.until ? answer : undefined;
  }

  /** The poll that began last has confirmed the deployment, by an answer that was read in full. */
  keep(id: string, answer: Omit<LastAnswer, 'until'>): void {
    const { clock, random } = this.#deps;
    this.putBack(id, { ...answer, until: clock.now() + LONGEST_MS * (0.5 + random.next() / 2) });
  }

  /** The same answer has come again. */
  putBack(id: string, answer: LastAnswer): void {
    if (this.#changed.has(id)) return;
    this.#answers.set(id, answer);
    this.#deployments.set(answer.providerInstanceId, id);
  }

  /** The row may have changed: the next poll reads it. */
  rowChanged(id: string): void {
    this.#delete(id);
    this.#changed.add(id);
  }

  /** The deployment of an instance whose last answer is kept. */
  deploymentOf(providerInstanceId: string): string | undefined {
    return this.#deployments.get(providerInstanceId);
  }

  #delete(id: string): void {
    const answer = this.#answers.get(id);
    if (answer === undefined) return;
    this.#answers.delete(id);
    this.#deployments.delete(answer.providerInstanceId);
  }
}
