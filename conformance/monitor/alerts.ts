import type { Clock } from '../http/clock.ts';
import type { Transport } from '../http/transport.ts';
import type { State } from './state.ts';

const TIMEOUT_MS = 15_000;
const MOST_BYTES = 64 * 1024;
const FIRST_PAUSE_MS = 60_000;
const LONGEST_PAUSE_MS = 3_600_000;

/** Sends alerts to the webhook, oldest first, each until it is answered with 2xx. They wait in the state meanwhile. */
export class AlertSender {
  readonly #parts: { state: State; clock: Clock; transport: Transport; webhook: string };
  #sending: Promise<void> | undefined;

  constructor(parts: { state: State; clock: Clock; transport: Transport; webhook: string }) {
    this.#parts = parts;
  }

  /** Starts to send what waits. Does nothing if it is being sent already. */
  wake(signal: AbortSignal): void {
    this.#sending ??= this.#sendAll(signal)
      .catch(() => {})
      .finally(() => {
        this.#sending = undefined;
      });
  }

  /** Waits until nothing is being sent. */
  async settled(): Promise<void> {
    await this.#sending;
  }

  async #sendAll(signal: AbortSignal): Promise<void> {
    const { state, clock, transport, webhook } = this.#parts;
    for (let pauseMs = FIRST_PAUSE_MS; ; ) {
      const [alert] = state.unsentAlerts();
      if (alert === undefined) return;
      const answer = await transport.send(
        {
          method: 'POST',
          url: webhook,
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(alert),
        },
        { timeoutMs: TIMEOUT_MS, maxBodyBytes: MOST_BYTES, signal },
      );
      if ('status' in answer && answer.status >= 200 && answer.status < 300) {
        state.markSent(alert.id);
        pauseMs = FIRST_PAUSE_MS;
        continue;
      }
      await clock.sleep(pauseMs, signal);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }
}
