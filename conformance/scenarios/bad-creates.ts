import type { Session } from './session.ts';

/** How many creates of a family may be accepted by mistake before the rest is skipped. */
export const MOST_ACCEPTED = 2;

/** Creates of one family that must all be refused. A target that accepts them sells unwanted resources. */
export class BadCreates {
  readonly #session: Session;
  #accepted = 0;

  constructor(session: Session) {
    this.#session = session;
  }

  /** Whether the next one may be sent; otherwise its steps are skipped. `--exhaustive` sends all. */
  mayAsk(step: string): boolean {
    if (this.#accepted < MOST_ACCEPTED || this.#session.settings.exhaustive === true) return true;
    const reason = `would buy: ${this.#accepted} creates of this kind that must be refused were accepted, so this one was not sent (--exhaustive sends all)`;
    this.#session.skip([step], reason);
    return false;
  }

  accepted(): void {
    this.#accepted++;
  }
}
