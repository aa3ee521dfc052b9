import type { Transport } from '../http/transport.ts';
import { SuiteFault } from '../transcript/transcript.ts';
import type { Terminal } from './terminal.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The source of signals and of uncaught errors. */
export interface SignalSource {
  on(event: string, listener: (cause: unknown) => void): unknown;
  off(event: string, listener: (cause: unknown) => void): unknown;
}

/** The first signal ends the run, which still cleans up; the second ends the clean-up too. */
export class Interruption implements Disposable {
  readonly #source: SignalSource;
  readonly #terminal: Terminal;
  readonly #ending = new AbortController();
  readonly #abandoning = new AbortController();
  /** Printed at the first signal. */
  notice = 'Interrupted.';
  /** An uncaught error: a fault of the suite. */
  fault: SuiteFault | undefined;

  constructor(source: SignalSource, terminal: Terminal) {
    this.#source = source;
    this.#terminal = terminal;
    for (const signal of SIGNALS) source.on(signal, this.#onSignal);
    source.on('uncaughtException', this.#onFault);
    source.on('unhandledRejection', this.#onFault);
  }

  /** Ends the run, but not its clean-up. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Ends the clean-up too. */
  get abandon(): AbortSignal {
    return this.#abandoning.signal;
  }

  /** Closes the transport when the clean-up is abandoned, so that no pending request is awaited. */
  closeWhenAbandoned(transport: Transport): void {
    this.abandon.addEventListener('abort', () => void transport.close(), { once: true });
  }

  [Symbol.dispose](): void {
    for (const signal of SIGNALS) this.#source.off(signal, this.#onSignal);
    this.#source.off('uncaughtException', this.#onFault);
    this.#source.off('unhandledRejection', this.#onFault);
  }

  readonly #onSignal = (): void => {
    if (this.signal.aborted) {
      this.#terminal.err('\nInterrupted again: the clean-up is abandoned.\n');
      this.#abandoning.abort(new Error('it was interrupted twice'));
      return;
    }
    this.#terminal.err(`\n${this.notice}\n`);
    this.#ending.abort(new Error('it was interrupted'));
  };

  readonly #onFault = (cause: unknown): void => {
    this.fault ??= new SuiteFault(cause instanceof Error ? cause.message : String(cause), { cause });
    this.#ending.abort(this.fault);
  };
}
