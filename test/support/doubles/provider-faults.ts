import {
  type CallOptions,
  type OrchestratorClient,
  ProviderError,
} from '../../../src/client/orchestrator-client.ts';
import type { Clock } from '../../../src/ports/clock.ts';

/** A poll is a `getInstance`. */
export type ProviderMethod = Exclude<keyof OrchestratorClient, 'close' | 'pollInstance'>;

export interface ProviderCall {
  method: ProviderMethod;
  /** What it is about; undefined for lists and creates. */
  id: string | undefined;
  at: number;
  args: readonly unknown[];
}

/**
 * `hang`: nothing is done, and the call times out · `refuse`: no connection · `lose`: nothing is done, and the
 * connection breaks · `commit-then-lose`: it is done, and the connection breaks · `error`: nothing is done, and this is
 * the answer · `commitThenError`: it is done, and this is the answer all the same · `lateMs`: the call times out, and
 * is done so long after it was sent · `answer`: it is done, and the answer is changed ·
 * `instead`: nothing is done, and this is the answer.
 */
export type ProviderFault =
  | 'none'
  | 'hang'
  | 'refuse'
  | 'lose'
  | 'commit-then-lose'
  | { error: ProviderError }
  | { commitThenError: ProviderError }
  | { lateMs: number }
  | { instead: unknown }
  // biome-ignore lint/suspicious/noExplicitAny: each method has an answer of its own
  | { answer: (truth: any) => unknown };

/** Decides, once per call, what goes wrong with it. `nth` counts the calls of this method from 1. */
export type ProviderFaultPlan = (method: ProviderMethod, nth: number, call: ProviderCall) => ProviderFault;

const noFaults: ProviderFaultPlan = () => 'none';

/** Answers that say nothing of a resource: none of them is a reason to change what is known. */
export const unreadableAnswers: Readonly<Record<string, () => ProviderError>> = {
  unauthorized: () => new ProviderError('unauthorized', '401: the key is not known', { status: 401 }),
  forbidden: () => new ProviderError('unauthorized', '403: not yours', { status: 403 }),
  limited: () => new ProviderError('limited', '429: too many requests', { status: 429 }),
  failed: () => new ProviderError('failed', '500: internal', { status: 500 }),
  'bad gateway': () => new ProviderError('failed', '502: bad gateway', { status: 502 }),
  html: () => new ProviderError('invalid', 'expected JSON, got HTML', { status: 200 }),
  truncated: () => new ProviderError('invalid', 'half of a JSON', { status: 200 }),
  'unknown status': () =>
    new ProviderError('invalid', 'status: expected one of PROVISIONING…', { status: 200 }),
  'price as a string': () => new ProviderError('invalid', 'price_per_hour: expected number', { status: 200 }),
  'negative price': () => new ProviderError('invalid', 'price_per_hour: expected >= 0', { status: 200 }),
  unreachable: () => new ProviderError('unreachable', 'ECONNREFUSED'),
  timeout: () => new ProviderError('timeout', 'no answer within 10 s'),
};

const READS: readonly ProviderMethod[] = [
  ...(['listConfigurations', 'listAvailability', 'listInstances', 'getInstance'] as const),
  ...(['listVolumeLocations', 'getVolume', 'restartStatus'] as const),
];
const DEFAULT_TIMEOUT_MS = 10_000;

/** Gives each call to a provider the fault that is planned for it, and keeps a journal. */
export class ProviderFaults {
  readonly calls: ProviderCall[] = [];
  plan: ProviderFaultPlan = noFaults;
  readonly #clock: Clock;
  readonly #counts = new Map<ProviderMethod, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  countOf(method: ProviderMethod): number {
    return this.#counts.get(method) ?? 0;
  }

  async through<T>(
    method: ProviderMethod,
    { id, args, options }: { id?: string; args: readonly unknown[]; options: CallOptions | undefined },
    commit: () => T,
  ): Promise<T> {
    const nth = this.countOf(method) + 1;
    this.#counts.set(method, nth);
    const call: ProviderCall = { method, id, at: this.#clock.now(), args };
    this.calls.push(call);
    const fault = this.plan(method, nth, call);
    const mayHaveHappened = !READS.includes(method);
    const timeoutMs = options?.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    const timeout = () =>
      new ProviderError('timeout', `${method}: no answer within ${timeoutMs} ms`, { mayHaveHappened });
    if (fault === 'none') return structuredClone(commit());
    if (fault === 'refuse') throw new ProviderError('unreachable', `${method}: ECONNREFUSED`);
    if (fault === 'hang') {
      await this.#wait(timeoutMs);
      throw timeout();
    }
    if (fault === 'lose' || fault === 'commit-then-lose') {
      if (fault === 'commit-then-lose') commit();
      throw new ProviderError('timeout', `${method}: the connection broke`, { mayHaveHappened });
    }
    if ('error' in fault) throw fault.error;
    if ('commitThenError' in fault) {
      commit();
      throw fault.commitThenError;
    }
    if ('instead' in fault) return structuredClone(fault.instead) as T;
    if ('answer' in fault) return fault.answer(structuredClone(commit())) as T;
    this.#clock.setTimer(fault.lateMs, () => {
      try {
        commit();
      } catch (error) {
        if (!(error instanceof ProviderError)) throw error;
      }
    });
    await this.#wait(timeoutMs);
    throw timeout();
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#clock.setTimer(ms, resolve));
  }
}
