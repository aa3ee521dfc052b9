import type { Socket } from 'node:net';
import type { OpenConnection } from './open-connections.ts';
import { connectionKey, readUnacknowledged } from './unacknowledged.ts';

/** How often a stalled connection is looked at before it is ended. */
const CHECKS = 3;

interface Parts {
  connections: Iterable<OpenConnection>;
  /** A reply of which no byte was drained for so long has stalled. */
  stallMs: number;
  onStalled: (opened: OpenConnection) => void;
}

/**
 * Ends connections whose reply has stalled: what they hold in memory is held for a client that reads nothing.
 *
 * A client that reads slowly is another matter. The kernel takes more of a reply only when a third of its buffer is
 * free, and that may be a megabyte: so what the client has acknowledged counts too, where the kernel tells it.
 */
export class StallWatch {
  readonly #parts: Parts;
  readonly #lastState = new WeakMap<OpenConnection, { state: string; times: number }>();
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  start(): void {
    const everyMs = this.#parts.stallMs / CHECKS;
    this.#timer = setTimeout(
      () => void this.#check().then(() => this.#timer && this.start()),
      everyMs,
    ).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  async #check(): Promise<void> {
    const waiting = [...this.#parts.connections].filter(hasUndrained);
    if (waiting.length === 0) return;
    const unacknowledged = await readUnacknowledged();
    for (const opened of waiting) {
      // It may have gone on while the kernel was asked.
      if (!hasUndrained(opened)) continue;
      const state = stateOf(opened, unacknowledged.get(connectionKey(opened.socket) ?? ''));
      const lastState = this.#lastState.get(opened);
      const times = lastState?.state === state ? lastState.times + 1 : 0;
      this.#lastState.set(opened, { state, times });
      if (times >= CHECKS) this.#parts.onStalled(opened);
    }
  }
}

/** Whether there are bytes that were written and that the kernel has not taken. */
function hasUndrained({ connection }: OpenConnection): boolean {
  return connection !== undefined && connection.socket.writableLength > 0;
}

/** Changes with every byte that is drained. */
function stateOf({ socket, connection }: OpenConnection, unacknowledged: number | undefined): string {
  const { writableLength } = (connection?.socket ?? socket) as Socket;
  return [writableLength, socket.bytesWritten, queueSize(socket), unacknowledged].join(' ');
}

/** What libuv holds of a write of which the kernel took a part: node:net looks at the same before a timeout. */
function queueSize(socket: Socket): number | undefined {
  const { _handle: handle } = socket as Socket & { _handle?: { writeQueueSize?: number } | null };
  return handle?.writeQueueSize;
}
