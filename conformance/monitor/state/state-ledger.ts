import type { Clock } from '../../http/clock.ts';
import type { Entry, LedgerFile, LedgerLine } from '../../resources/ledger.ts';
import { LedgerError } from '../../resources/ledger-file.ts';
import { systemErrorText } from '../../text/wording.ts';
import { LeaseLost } from './lease.ts';
import type { State } from './state.ts';

/** How long a purchase waits for its intent to be stored. */
const PATIENCE_MS = 10_000;
const LONGEST_PAUSE_MS = 30_000;

/**
 * The ledger of a run in the state. Lines are stored in order. While the state is not available they wait, and nothing is
 * bought: `flushed` rejects. Once another monitor holds the state they are dropped: that one has taken the run over.
 */
export class StateLedger implements LedgerFile {
  readonly #state: State;
  readonly #clock: Clock;
  readonly #of: { provider: string; runId: string };
  readonly #signal: AbortSignal;
  readonly #entries = new Map<number, Entry>();
  #stored: Promise<void> = Promise.resolve();
  #waiting = 0;
  #why: unknown;

  /** `signal` ends the attempts to store what waits. */
  constructor(state: State, of: { provider: string; runId: string }, clock: Clock, signal: AbortSignal) {
    this.#state = state;
    this.#of = of;
    this.#clock = clock;
    this.#signal = signal;
  }

  /** The entries in their last state. */
  get entries(): Entry[] {
    return [...this.#entries.values()];
  }

  append(line: LedgerLine): void {
    if (line.line === 'entry') this.#entries.set(line.entry.n, line.entry);
    this.#waiting++;
    this.#stored = this.#stored.then(() => this.#store(line));
  }

  async flushed(): Promise<void> {
    const late = new AbortController();
    const patience = this.#clock.sleep(PATIENCE_MS, late.signal).catch(() => {});
    await Promise.race([this.#stored, patience]);
    late.abort();
    if (this.#waiting === 0 && !(this.#why instanceof LeaseLost)) return;
    throw new LedgerError(`the state cannot be written (${systemErrorText(this.#why)}): nothing is bought`);
  }

  /** Waits until every line is stored, or dropped. */
  async settled(): Promise<void> {
    await this.#stored;
  }

  async #store(line: LedgerLine): Promise<void> {
    for (
      let pauseMs = 500;
      !(this.#why instanceof LeaseLost);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
    ) {
      try {
        await this.#state.append(this.#of.provider, this.#of.runId, line);
        this.#why = undefined;
        break;
      } catch (error) {
        this.#why = error;
      }
      if (this.#why instanceof LeaseLost) break;
      try {
        await this.#clock.sleep(pauseMs, this.#signal);
      } catch {
        break;
      }
    }
    this.#waiting--;
  }
}
